"""`tempergat data`: lists datasets and reports on your own graph."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.base import UserError, printable
from tempergat.cli.options.groups import ReadingOptions, with_options
from tempergat.cli.options.shared import Json, complete_dataset
from tempergat.cli.ui.output import echo, print_json

if TYPE_CHECKING:
    from tempergat.data import Entry

_Root = Annotated[
    Path | None,
    typer.Option(help="Data root; TEMPERGAT_DATA or the user's cache when left out."),
]

EXAMPLES = {
    "data": ("tempergat data list", "tempergat data check path/to/my/graph"),
}


def list_datasets(root: _Root = None, as_json: Json = False) -> None:
    """List every dataset: size, metric, splits, what is on disk."""
    from tempergat.data import CATALOG, data_root

    facts = [_facts(entry, data_root(root)) for entry in CATALOG.values()]
    if as_json:
        print_json(facts)
        return
    from tempergat.cli.ui.tables import SafeConsole, layout

    console = SafeConsole()
    keys = ("name", "nodes", "edges", "features", "classes", "metric", "splits")
    rows = [[_text(fact[key]) for key in (*keys, "at_hand")] for fact in facts]
    console.print(layout((*keys, "on disk"), rows, console.width))


def show_info(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A name from `tempergat data list`.",
            autocompletion=complete_dataset,
        ),
    ],
    root: _Root = None,
    as_json: Json = False,
) -> None:
    """Print everything known about a dataset, and what it needs."""
    from tempergat.data import data_root, find_entry

    if os.path.lexists(name) and (os.sep in name or Path(name).suffix):
        raise UserError(
            f"{name} is a path, and `data info` takes the name of a dataset; use "
            f"`tempergat data check {name}`"
        )
    entry = find_entry(name)
    facts = {**_facts(entry, data_root(root)), **_needs(entry)}
    if as_json:
        print_json(facts)
        return
    files = facts.pop("files")
    facts["on disk"] = facts.pop("at_hand")
    _print_pairs({key.replace("_", " "): value for key, value in facts.items()})
    for file in files:
        size = "" if file["bytes"] is None else f", {_size(file['bytes'])}"
        checksum = "known" if file["sha256"] else "unknown"
        use = "" if file["comes_first"] else ", if the first file holds another graph"
        echo(f"file      {file['name']}: {file['url']}{size}, sha256 {checksum}{use}")


def _needs(entry: "Entry") -> dict[str, Any]:
    """The recipe, and what the dataset needs with it, estimated from its counts."""
    from tempergat.data import batch_nodes, disk_bytes, reading_bytes, step_bytes
    from tempergat.training import recipe_for

    name, recipe = recipe_for(entry.name)
    facts: dict[str, Any] = {"recipe": name}
    if not entry.files:
        return facts
    config = recipe.config_for("temp_gated")
    raw, processed = disk_bytes(entry)
    batch, fanout = config.batch_size, config.fanout or ()
    return {
        **facts,
        "disk_for_raw_files_bytes": raw,
        "disk_for_processed_graph_bytes": processed or None,
        "memory_to_read_bytes": reading_bytes(entry),
        "most_nodes_of_a_batch": batch and batch_nodes(entry, batch, fanout),
        "most_memory_of_a_step_bytes": step_bytes(
            entry, config.hidden_channels, config.num_layers, batch, fanout
        ),
    }


@with_options(path=(ReadingOptions,))
def check(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A folder of tables or .npy files, or an .npz, .pt or .graphml file.",
        ),
    ],
    as_json: Json = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Report what your own graph holds, and whether it can be trained on.

    Exit status: 0 if it can, or if it has no labels and is only for `predict`; 2
    if `compare` and `train` would refuse it.
    """
    _refuse_name(path)
    from tempergat.data import check_graph
    from tempergat.training import refuse_untrainable

    findings = check_graph(
        path, reading.options(), reading["scale"], refuse_untrainable
    )
    if as_json:
        print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        width = max(len(finding.subject) for finding in findings)
        for finding in findings:
            value = _text(finding.value)
            needed = finding.action and finding.value not in (0, None)
            line = f"{finding.subject:<{width}}  {value}"
            shown = f"{line}  ->  {finding.action}" if needed else line
            echo(printable(shown))
    for finding in findings:
        if finding.subject == "compare":
            raise UserError(finding.action)


# The commands by name, and what a user may type.
COMMANDS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "list": (list_datasets, ("tempergat data list", "tempergat data list --json")),
    "info": (
        show_info,
        (
            "tempergat data info cora",
            "tempergat data info ogbn-arxiv --json",
        ),
    ),
    "check": (
        check,
        (
            "tempergat data check path/to/my/graph",
            "tempergat data check my/graph --label subject --one-hot city",
        ),
    ),
}


def _refuse_name(path: Path) -> None:
    """Explain a dataset by name, which needs no check, and a misspelt path.

    Raises:
        UserError: It is one of them.
    """
    from tempergat.data import CATALOG

    name = str(path).lower()
    if name not in CATALOG and not os.path.lexists(path):
        raise UserError(f"there is no file or folder {path}; check the path")
    if name in CATALOG and not path.exists():
        raise UserError(
            f"{name} is a dataset by name, and `data check` reads your own graph; see "
            f"`tempergat data info {name}`, or use ./{name} for a folder of that name"
        )


def _facts(entry: "Entry", root: Path) -> dict[str, Any]:
    from tempergat.data import availability

    facts: dict[str, Any] = {
        "name": entry.name,
        "description": entry.description,
        "nodes": entry.num_nodes,
        "edges": entry.num_edges,
        "edges_in_the_paper": entry.paper_edges,
        "node_types": entry.node_types,
        "edge_types": entry.edge_types,
        "features": entry.num_features,
        "classes": entry.num_classes,
        "classified": entry.target,
        "metric": entry.metric,
        "splits": entry.num_splits or "made",
        "split": entry.split,
        "license": entry.license,
        "h2_index_in_the_paper": entry.h2_index,
        "download_bytes": entry.download_bytes,
        "at_hand": availability(entry, root),
        "note": entry.note,
        "files": [
            {
                "name": file.name,
                "url": file.url,
                "bytes": file.size,
                "sha256": file.sha256,
                "comes_first": file in entry.files,
            }
            for file in (*entry.files, *entry.swapped_files)
        ],
    }
    return facts


def _print_pairs(pairs: dict[str, Any]) -> None:
    shown = {
        key: _text(value) for key, value in pairs.items() if value not in (None, "")
    }
    if "download bytes" in pairs:
        shown.pop("download bytes", None)
        size = pairs["download bytes"]
        shown["download"] = "size unknown" if size is None else _size(size)
    for key in [key for key in shown if key.endswith(" bytes")]:
        del shown[key]
        shown[key.removesuffix(" bytes")] = f"about {_size(pairs[key])}"
    if "most nodes of a batch" in shown:
        most = shown.pop("most nodes of a batch")
        size = shown["most memory of a step"].removeprefix("about ")
        shown["most memory of a step"] = (
            f"at most {size}, of a batch of {most} nodes; it has fewer where nodes "
            "share neighbours"
        )
    width = max(len(key) for key in shown)
    for key, value in shown.items():
        echo(f"{key:<{width}}  {value}")


def _size(number: int) -> str:
    if number < 2**20:
        return f"{number:,} bytes"
    unit, name = (2**30, "GiB") if number >= 2**30 else (2**20, "MiB")
    return f"{number / unit:,.1f} {name}"


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(part)}" for key, part in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
