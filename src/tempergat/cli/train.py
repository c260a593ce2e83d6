"""`tempergat train`, one run with a checkpoint, and `tempergat predict` from it."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.base import UserError, replace_non_finite
from tempergat.cli.graphs import load_graph
from tempergat.cli.ui.options import (
    DatasetName,
    DeviceName,
    Json,
    Quiet,
    RecipeName,
    Split,
    SplitSeed,
    parse_device,
    require_writable,
)
from tempergat.cli.ui.spinner import spinner
from tempergat.cli.ui.stopping import stoppable

if TYPE_CHECKING:
    from rich.console import Console

    from tempergat.data import Dataset
    from tempergat.training import Run, RunConfig, Tracker

# A line this often where there is no terminal, in parts of the whole run.
_LINES = 10


def register(app: typer.Typer) -> None:
    """Add both commands to the application."""
    app.command()(train)
    app.command()(predict)


def train(
    dataset: DatasetName,
    method: Annotated[str, typer.Option(help="One of `tempergat methods`.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the run.")] = 0,
    recipe: RecipeName = None,
    split: Split = None,
    split_seed: SplitSeed = None,
    device: DeviceName = "auto",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the checkpoint; one for each run under tempergat-out/ "
            "when left out.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Go on from the folder's checkpoint, or start anew.")
    ] = True,
    track: Annotated[
        str | None, typer.Option(help="Also send curves to tensorboard or wandb.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train one run, with a checkpoint.

    The same command goes on where it was stopped, and ends with the same weights.
    """
    with spinner("starting", quiet=quiet):
        from tempergat.cli.ui.tables import error_console
        from tempergat.training import recipe_for, train_single

        _, settings = recipe_for(dataset, recipe)
        config = settings.config_for(method)
        where = parse_device(device)
    # Before a download, so that it is not in vain.
    require_writable(out or Path("tempergat-out"))
    console = error_console()
    graph = load_graph(dataset, split, split_seed, None if quiet else console)
    folder = out or Path("tempergat-out") / _folder_name(
        graph.name, method, seed, split, split_seed
    )
    with (
        stoppable(f"the checkpoint in {folder} is kept"),
        _tracker(track, folder, config) as tracker,
        _epoch_display(None if quiet else console, config.epochs) as on_epoch,
    ):
        run = train_single(
            graph,
            config,
            seed,
            where,
            folder,
            resume=resume,
            on_epoch=on_epoch,
            tracker=tracker,
        )
    _show(graph, config, run, folder, as_json)
    if run.status == "failed":
        raise typer.Exit(1)


def predict(
    checkpoint: Annotated[
        Path, typer.Argument(help="A checkpoint of `tempergat train`, or its folder.")
    ],
    data: DatasetName,
    out: Annotated[Path, typer.Option(help="The CSV to write.")] = Path("labels.csv"),
    device: DeviceName = "auto",
    as_json: Json = False,
) -> None:
    """Classify a graph's nodes with a checkpoint; they need no labels.

    Writes a CSV of nodes and class numbers; classes given as words count in
    alphabetical order.
    """
    from tempergat.base import files as atomic
    from tempergat.base.csv_files import csv_text
    from tempergat.training import predict as predict_classes

    require_writable(out.parent)
    graph = load_graph(data, None, None, None, labelled=False)
    classes = predict_classes(checkpoint, graph, parse_device(device)).tolist()
    nodes = graph.node_ids or range(len(classes))
    lines = [
        {"node": node, "label": label}
        for node, label in zip(nodes, classes, strict=True)
    ]
    atomic.write_text(out, csv_text(lines))
    counts = {label: classes.count(label) for label in sorted(set(classes))}
    if as_json:
        facts = {
            "dataset": graph.name,
            "nodes": len(classes),
            "per_class": {str(label): count for label, count in counts.items()},
            "file": str(out),
        }
        typer.echo(json.dumps(facts, indent=1))
        return
    listed = ", ".join(f"{count:,} of class {label}" for label, count in counts.items())
    typer.echo(f"{graph.name}: {len(classes):,} nodes, {listed}")
    typer.echo(f"wrote {out}")


def _show(
    graph: "Dataset",
    config: "RunConfig",
    run: "Run",
    folder: Path,
    as_json: bool,
) -> None:
    from tempergat.study.results import METRIC_NAMES
    from tempergat.training import CHECKPOINT_NAME

    file = folder / CHECKPOINT_NAME
    scores = {
        rule: {part: 100.0 * getattr(found, part) for part in ("train", "val", "test")}
        for rule, found in run.scores.items()
    }
    learned = {
        name: {
            "selected": list(getattr(run.selected, name)),
            "last": list(getattr(run.last, name)),
        }
        for name in ("temperatures", "gate_means")
    }
    if as_json:
        facts: dict[str, Any] = {
            "dataset": graph.name,
            "method": config.method,
            "seed": run.seed,
            "metric": graph.metric,
            "status": run.status,
            "reason": run.reason,
            "selection": config.selection,
            "epochs": {rule: found.epoch for rule, found in run.scores.items()},
            "scores": scores,
            "temperatures": replace_non_finite(learned["temperatures"]),
            "gate_means": replace_non_finite(learned["gate_means"]),
            "time_s": run.time_s,
            "checkpoint": str(file),
        }
        typer.echo(json.dumps(facts, indent=1, allow_nan=False))
        return
    title = f"{config.method} on {graph.name}, seed {run.seed}"
    if run.status == "failed":
        typer.echo(f"{title}: failed, {run.reason}")
        return
    chosen = scores[config.selection]
    typer.echo(
        f"{title}: test {METRIC_NAMES[graph.metric]} {chosen['test']:.2f} % at epoch "
        f"{run.selected_epoch} of {config.epochs} (validation {chosen['val']:.2f}, "
        f"training {chosen['train']:.2f})"
    )
    for words, values in (
        ("temperatures", run.selected.temperatures),
        ("mean gates", run.selected.gate_means),
    ):
        if values:
            typer.echo(f"{words}: {', '.join(f'{value:.3f}' for value in values)}")
    typer.echo(f"checkpoint: {file}")


def _folder_name(
    dataset: str, method: str, seed: int, split: str | None, split_seed: int | None
) -> str:
    """A folder for each run; runs on another split than the first say which."""
    from tempergat.base.files import file_stem

    name = f"{method}-seed{seed}"
    if split is not None:
        name += f"-split{split}"
    if split_seed is not None:
        name += f"-splitseed{split_seed}"
    return f"{file_stem(dataset)}-{file_stem(name)}"


@contextmanager
def _tracker(
    name: str | None, folder: Path, config: "RunConfig"
) -> Iterator["Tracker | None"]:
    from tempergat.training import TensorBoardTracker, WandbTracker

    if name is None:
        yield None
    elif name == "tensorboard":
        yield TensorBoardTracker(folder / "tensorboard")
    elif name == "wandb":
        yield WandbTracker("tempergat", config.model_dump(mode="json"), folder)
    else:
        raise UserError(f"--track is {name!r}; choose tensorboard or wandb")


@contextmanager
def _epoch_display(
    console: "Console | None", epochs: int
) -> Iterator[Callable[[int], None] | None]:
    from tempergat.base import duration

    if console is None:
        yield None
        return
    begun: list[tuple[int, float]] = []

    def words(epoch: int) -> str:
        # Epochs done before this process started say nothing about its speed.
        begun.append((epoch, time.monotonic()))
        del begun[1:-1]
        (first, since), (last, now) = begun[0], begun[-1]
        left = ""
        if last > first and epoch < epochs:
            seconds = (now - since) / (last - first) * (epochs - epoch)
            left = f", about {duration(seconds)} left"
        return f"epoch {epoch} of {epochs}{left}"

    if not console.is_terminal:
        every = max(epochs // _LINES, 1)

        def say(epoch: int) -> None:
            line = words(epoch)
            if epoch % every == 0 or epoch == epochs:
                console.print(line)

        yield say
        return
    with console.status("starting") as status:
        yield lambda epoch: status.update(words(epoch))
