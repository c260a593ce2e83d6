"""Commands about checkpoints: `tempergat predict` and `explore`."""

import io
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempergat.base import UserError, is_standard_output, write_bytes
from tempergat.cli.options.groups import ReadingOptions, with_options
from tempergat.cli.options.shared import (
    DatasetName,
    Json,
    parse_device,
    require_writable_file,
)
from tempergat.cli.ui.graphs import print_notes, refuse_unknown_name
from tempergat.cli.ui.output import echo, echo_beside, print_json, write_output

if TYPE_CHECKING:
    from torch import Tensor


EXAMPLES = {
    "predict": (
        "tempergat predict tempergat-out/cora-temp_gated-seed0 cora",
        "tempergat predict CHECKPOINT my/graph --probabilities --out labels.csv",
    ),
    "explore": (
        "tempergat explore tempergat-out/cora-temp_gated-seed0",
        "tempergat explore CHECKPOINT my/graph --out explore.html",
    ),
}

_Checkpoint = Annotated[
    Path,
    typer.Argument(
        metavar="CHECKPOINT", help="A checkpoint of `tempergat train`, or its folder."
    ),
]


_Embeddings = Annotated[
    Path | None,
    typer.Option(
        help="Also write the last hidden features, a row per node: FILE.npy, or "
        "FILE.csv with the nodes' names.",
        metavar="FILE",
    ),
]


@with_options(embeddings=(ReadingOptions, "device"))
def predict(
    checkpoint: _Checkpoint,
    data: DatasetName,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The CSV to write; - for standard output.", show_default="labels.csv"
        ),
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities", help="Add a column with the probability of each class."
        ),
    ] = False,
    embeddings: _Embeddings = None,
    as_json: Json = False,
    *,
    reading: ReadingOptions,
    device: str,
) -> None:
    """Classify the nodes of a graph with a checkpoint.

    The nodes need no labels. Writes a CSV of nodes and classes. The graph is read as
    the training graph was, and its features are matched by name.
    """
    refuse_unknown_name(data)
    from tempergat.data import describe_reading, reading_line
    from tempergat.training import load_model

    if not reading["scale"]:
        raise UserError(
            "--no-scale is for training, and a model scales features as it was "
            "trained; leave it out"
        )
    path = out or Path("labels.csv")
    to_screen = is_standard_output(path)
    _check_outputs(path, embeddings, as_json=as_json)
    model = load_model(checkpoint, device=parse_device(device))
    graph = model.read_graph(data, reading.options())
    print_notes(graph)
    if line := reading_line(graph):
        echo(line, err=True)
    words = model.predicted.words
    classes = [words[number] for number in model.predict(graph).tolist()]
    nodes = graph.node_ids or tuple(map(str, range(len(classes))))
    shares = model.predict_proba(graph) if probabilities else None
    if embeddings is not None:
        write_bytes(embeddings, _embeddings(nodes, model.embed(graph), embeddings))
    write_output(_csv(nodes, classes, words, shares), out, path)
    if formulas := sum(map(_is_formula, (*nodes, *set(classes)))):
        echo(
            f"note: {formulas} names of nodes or classes begin like a formula (=, +, "
            "-, @); they are written as they are, so let a spreadsheet import the file "
            "as text",
            err=True,
        )
    per_class = Counter(classes)
    counts = {word: per_class[word] for word in words if word in per_class}
    if as_json:
        print_json(
            {
                "dataset": graph.name,
                "nodes": len(classes),
                "per_class": counts,
                "read": describe_reading(graph),
                "notes": list(graph.notes),
                "file": str(path),
                **({"embeddings": str(embeddings)} if embeddings else {}),
            }
        )
        return
    listed = ", ".join(f"{count:,} of class {word}" for word, count in counts.items())
    line = f"{graph.name}: {len(classes):,} nodes, {listed}"
    echo_beside(line, path)
    if not to_screen:
        echo(f"wrote {path}{f' and {embeddings}' if embeddings else ''}")


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet would compute a cell instead of showing it."""
    is_number = text.lstrip("+-").replace(".", "", 1).isdigit()
    return text.startswith(("=", "+", "-", "@")) and not is_number


def _check_outputs(path: Path, embeddings: Path | None, *, as_json: bool) -> None:
    if is_standard_output(path) and as_json:
        raise UserError(
            f"--out {path} and --json both write to standard output; leave out one of "
            "them"
        )
    require_writable_file(path)
    if embeddings is None:
        return
    if embeddings.suffix not in (".npy", ".csv"):
        raise UserError(
            f"--embeddings {embeddings} ends in {embeddings.suffix or 'nothing'}; give "
            "a file that ends in .npy or .csv"
        )
    require_writable_file(embeddings)


def _embeddings(nodes: tuple[str, ...], values: "Tensor", path: Path) -> bytes:
    """Hidden features as the content of a .npy file, or of a CSV with nodes' names."""
    if path.suffix == ".csv":
        from tempergat.base import csv_text

        rows = zip(nodes, values.tolist(), strict=True)
        lines = [{"node": n, **{f"h{k}": v for k, v in enumerate(h)}} for n, h in rows]
        return csv_text(lines).encode()
    import numpy as np

    buffer = io.BytesIO()
    np.save(buffer, values.numpy())
    return buffer.getvalue()


def _csv(
    nodes: tuple[str, ...],
    classes: list[str],
    words: tuple[str, ...],
    shares: "Tensor | None",
) -> str:
    """A line per node: its name, its class and, if wanted, each class's probability."""
    from tempergat.base import csv_text

    columns = [f"probability_{word}" for word in words]
    rows = [
        {"node": node, "label": label}
        for node, label in zip(nodes, classes, strict=True)
    ]
    if shares is not None:
        for row, values in zip(rows, shares.tolist(), strict=True):
            numbers = (f"{value:.6g}" for value in values)
            row.update(zip(columns, numbers, strict=True))
    return csv_text(rows)


def explore(
    checkpoint: _Checkpoint,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET|PATH",
            help="A name from `tempergat data list`, or the path of your own graph; "
            "what the checkpoint names when left out.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file to write; - for standard output.",
            show_default="explore.html",
        ),
    ] = None,
) -> None:
    """Write a page that shows a trained model node by node.

    It has attention weights, gates and predictions. It is one HTML file that needs no
    network. Drag the temperature of a layer and see attention weights and predictions
    change; search nodes, or go through the wrongly classified ones. Larger graphs come
    as a sample of their nodes, and the page says so.
    """
    if data is not None:
        refuse_unknown_name(data)
    path = out or Path("explore.html")
    require_writable_file(path)
    from tempergat.comparison import explorer_page, record
    from tempergat.training import load_model

    recorded = record(load_model(checkpoint, device="cpu"), data)
    page = explorer_page(recorded)
    write_output(page, out, path)
    print_notes(recorded.dataset)
    shown = int(recorded.sample.shown.sum())
    part = "" if recorded.sample.is_whole else f" of {recorded.num_nodes:,}"
    size = len(page.encode()) / 1e6
    echo_beside(f"explorer {path}   {shown:,}{part} nodes, {size:.1f} MB", path)
