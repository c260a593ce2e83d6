"""`tempergat train`: one run with a checkpoint."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.base import UserError, file_stem, replace_non_finite
from tempergat.cli.options.groups import ReadingOptions, Settings, with_options
from tempergat.cli.options.shared import (
    DatasetName,
    Json,
    Quiet,
    complete_method,
    parse_device,
    require_writable,
)
from tempergat.cli.ui.graphs import load_graph, refuse_unknown_name
from tempergat.cli.ui.output import echo, print_json, spinner
from tempergat.cli.ui.signals import stoppable

if TYPE_CHECKING:
    from rich.console import Console

    from tempergat.data import Dataset
    from tempergat.training import Metric, Run, RunConfig, Scores, Tracker


EXAMPLES = {
    "train": (
        "tempergat train cora --method temp_gated",
        "tempergat train my/graph --method gat --training sampled --fanout 10,5",
    ),
}


_Method = Annotated[
    str,
    typer.Option(help="One of `tempergat methods`.", autocompletion=complete_method),
]
_Folder = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the checkpoint; one for each run under tempergat-out/ "
        "when left out.",
    ),
]


@with_options(
    seed=("recipe", "split", "split_seed", Settings, ReadingOptions, "device")
)
def train(
    dataset: DatasetName,
    method: _Method,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the run.")] = 0,
    out: _Folder = None,
    resume: Annotated[
        bool,
        typer.Option(help="Continue from the folder's checkpoint, or train again."),
    ] = True,
    track: Annotated[
        str | None, typer.Option(help="Also send curves to tensorboard or wandb.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    recipe: str | None,
    split: str | None,
    split_seed: int | None,
    settings: Settings,
    reading: ReadingOptions,
    device: str,
) -> None:
    """Train one run, with a checkpoint.

    The same command continues where it was stopped, and ends with the same weights if
    torch has as many threads.
    """
    from tempergat.nn import find_method

    refuse_unknown_name(dataset)
    find_method(method)
    with spinner("starting", quiet=quiet):
        from tempergat.cli.ui.tables import SafeConsole
        from tempergat.training import notes_on_unused_edges, recipe_for, settings_on
        from tempergat.training import train as train_model

        overrides = settings.overrides()
        overrides.notes_for([method])
        recipe_name, chosen = recipe_for(dataset, recipe)
        config = overrides.applied_to(chosen.config_for(method), dataset)
        where = parse_device(device)
    # Checked before a download.
    require_writable(out or Path("tempergat-out"))
    console = SafeConsole(stderr=True)
    shown = None if quiet else console
    graph = load_graph(dataset, split, split_seed, shown, reading)
    config = settings_on(config, graph)
    if shown is not None:
        shown.print(f"{method}, recipe {recipe_name}{overrides.words}")
    for note in notes_on_unused_edges(graph, [config]):
        console.print(note)
    folder = out or Path("tempergat-out") / _folder_name(
        graph.name, method, seed, split, split_seed
    )
    with (
        stoppable(f"the checkpoint in {folder} is kept"),
        _epoch_display(None if quiet else console, config.epochs) as on_epoch,
    ):
        model = train_model(
            graph,
            method,
            seed=seed,
            recipe=chosen,
            device=where,
            out=folder,
            resume=resume,
            progress=False if on_epoch is None else on_epoch,
            tracker=_tracker(track, folder, config),
            settings=overrides.values,
        )
    _show(graph, config, model.run, folder, as_json)
    if model.run.status == "failed":
        raise typer.Exit(1)


def _show(
    graph: "Dataset",
    config: "RunConfig",
    run: "Run",
    folder: Path,
    as_json: bool,
) -> None:
    from tempergat.data import describe_reading
    from tempergat.training import (
        CHECKPOINT_NAME,
        METRICS,
        confusion_as_json,
        metric_of_run,
    )

    file = folder / CHECKPOINT_NAME
    metric = METRICS[metric_of_run(config, graph)]
    scores = {rule: _shown(metric, of_rule) for rule, of_rule in run.scores.items()}
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
            "metric": metric.name,
            "status": run.status,
            "reason": run.reason,
            "read": describe_reading(graph),
            "notes": list(graph.notes),
            "selection": config.selection,
            "epochs": {rule: of_rule.epoch for rule, of_rule in run.scores.items()},
            "scores": scores,
            "metrics": {
                name: {r: _shown(METRICS[name], of) for r, of in by_rule.items()}
                for name, by_rule in (run.metrics or {}).items()
            },
            "confusion": confusion_as_json(run.confusion),
            "class_names": graph.predicted.names,
            "temperatures": replace_non_finite(learned["temperatures"]),
            "gate_means": replace_non_finite(learned["gate_means"]),
            "time_s": run.time_s,
            "checkpoint": str(file),
        }
        print_json(facts)
        return
    title = f"{config.method} on {graph.name}, seed {run.seed}"
    if run.status == "failed":
        echo(f"{title}: failed, {run.reason}")
        return
    chosen = scores[config.selection]
    echo(
        f"{title}: test {metric.words} "
        f"{metric.with_unit(run.scores[config.selection].test)} at epoch "
        f"{run.selected_epoch} of {config.epochs} (validation "
        f"{metric.text(chosen['val'])}, training {metric.text(chosen['train'])})"
    )
    for words, values in (
        ("temperatures", run.selected.temperatures),
        ("mean gates", run.selected.gate_means),
    ):
        if values:
            echo(f"{words}: {', '.join(f'{value:.3f}' for value in values)}")
    echo(f"checkpoint: {file}")


def _shown(metric: "Metric", scores: "Scores") -> dict[str, float]:
    return {p: metric.shown(getattr(scores, p)) for p in ("train", "val", "test")}


def _folder_name(
    dataset: str, method: str, seed: int, split: str | None, split_seed: int | None
) -> str:
    """The name of a run's folder; it names the split if one was chosen."""
    name = f"{method}-seed{seed}"
    if split is not None:
        name += f"-split{split}"
    if split_seed is not None:
        name += f"-splitseed{split_seed}"
    return f"{file_stem(dataset)}-{file_stem(name)}"


def _tracker(name: str | None, folder: Path, config: "RunConfig") -> "Tracker | None":
    from tempergat.training import TensorBoardTracker, WandbTracker

    if name is None:
        return None
    if name == "tensorboard":
        return TensorBoardTracker(folder / "tensorboard")
    if name == "wandb":
        return WandbTracker("tempergat", config.model_dump(mode="json"), folder)
    raise UserError(f"--track is {name!r}; choose tensorboard or wandb")


@contextmanager
def _epoch_display(
    console: "Console | None", epochs: int
) -> Iterator[Callable[[int], None] | None]:
    from tempergat.training import EpochLines

    if console is None:
        yield None
        return
    lines = EpochLines(epochs)
    if not console.is_terminal:

        def print_line(epoch: int) -> None:
            line = lines.line(epoch)
            if lines.is_due(epoch):
                console.print(line)

        yield print_line
        return
    with console.status("starting") as status:
        yield lambda epoch: status.update(lines.line(epoch))
