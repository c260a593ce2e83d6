"""`tempergat tune` and `tempergat calibrate`: settings found, and their pages."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.cli.graphs import load_graph
from tempergat.cli.reproduce import DOCS, JSON, RESULTS, reproduce_app
from tempergat.cli.ui.options import (
    DatasetName,
    DeviceName,
    Json,
    OutFolder,
    Quiet,
    Split,
    SplitSeed,
    choose_device,
    describe,
    require_writable,
    resume_command,
)
from tempergat.cli.ui.signals import exit_status
from tempergat.cli.ui.spinner import waiting

if TYPE_CHECKING:
    from rich.console import Console

    from tempergat.study.engine.sweep import Progress
    from tempergat.study.tuning.calibrate import DatasetCalibration
    from tempergat.study.tuning.plans import Backbone
    from tempergat.study.tuning.search import Trial

STORE_NAME = "store.sqlite"


def register(app: typer.Typer) -> None:
    """Add the commands to the application, and their pages to `reproduce`."""
    app.command()(tune)
    app.command()(calibrate)
    reproduce_app.command()(calibration)
    reproduce_app.command()(tuned)


def tune(
    dataset: DatasetName,
    search: Annotated[
        Path | None,
        typer.Option(
            help="YAML file of the search; the dataset's own when left out.",
        ),
    ] = None,
    split: Split = None,
    split_seed: SplitSeed = None,
    device: DeviceName = "auto",
    out: OutFolder = Path("tempergat-out/tuned"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search good settings for gcn, gat and gatv2 on validation accuracy.

    Writes a recipe, to be used with `tempergat compare --recipe`, in which all
    variants share their backbone's settings. The same command goes on where it was
    stopped. Needs the extra: pip install 'tempergat[tune]'.
    """
    with waiting("starting", quiet=quiet):
        from tempergat.cli.ui.tables import error_console
        from tempergat.study.engine.store import Store
        from tempergat.study.tuning.plans import BACKBONES, load_search
        from tempergat.study.tuning.search import require_optuna, write_tuned
        from tempergat.study.tuning.search import search as search_backbone

        plan = load_search(search or dataset)
        require_optuna()
        where = choose_device(device)
        require_writable(out)
    console = error_console()
    graph = load_graph(dataset, split, split_seed, None if quiet else console)
    if not quiet:
        console.print(describe(graph))
    trials: list[Trial] = []

    def on_trial(trial: "Trial") -> None:
        if not quiet:
            console.print(_trial_line(trial, plan.trials))

    with _stoppable(), Store(out / STORE_NAME) as store:
        for backbone in BACKBONES:
            trials += search_backbone(
                graph, plan, backbone, store, where, on_trial=on_trial
            )
    recipe, table = write_tuned(graph.name, plan, trials, out, out)
    best = _best(trials)
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "dataset": graph.name,
                    "best": {name: asdict(trial) for name, trial in best.items()},
                    "recipe": str(recipe),
                    "trials": str(table),
                },
                indent=1,
                allow_nan=False,
            )
        )
        return
    for trial in best.values():
        typer.echo(_trial_line(trial, plan.trials))
    typer.echo(f"recipe   {recipe}")
    typer.echo(f"trials   {table}")


def calibrate(
    datasets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATASET...",
            help="Some of cora, citeseer, pubmed; all three when left out.",
            show_default=False,
        ),
    ] = None,
    results: RESULTS = Path("results"),
    device: DeviceName = "auto",
    out: OutFolder = Path("tempergat-out/calibration"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find what the paper leaves unstated, on its baselines alone.

    Trains gcn, gat and gatv2 in every cell of a fixed grid and takes the cell whose
    means lie nearest the paper's. The runs go to results/calibration.csv. The same
    command goes on where it was stopped.
    """
    with waiting("starting", quiet=quiet):
        from tempergat.cli.ui.tables import error_console, output_console, print_table
        from tempergat.study.engine.export import export_runs
        from tempergat.study.engine.store import Store
        from tempergat.study.paper.numbers import read_paper
        from tempergat.study.tuning import calibrate as study
        from tempergat.study.tuning.calibration_page import (
            CALIBRATION_CSV,
            calibration_table,
        )
        from tempergat.study.tuning.plans import load_calibration

        plan, paper = load_calibration(), read_paper(results)
        names = datasets or list(plan.datasets)
        for name in names:
            study.grid_of(plan, name)
        where = choose_device(device)
        require_writable(out)
    console = error_console()
    found = []
    with _stoppable(), Store(out / STORE_NAME) as store:
        for name in names:
            graph = load_graph(name, None, None, None if quiet else console)
            show = None if quiet else _progress_lines(console, name)
            found.append(study.calibrate(graph, plan, paper[name], store, where, show))
        export_runs(store, results / CALIBRATION_CSV)
    if as_json:
        typer.echo(json.dumps(_calibration_json(found), indent=1, allow_nan=False))
        return
    for one in found:
        print_table(output_console(), calibration_table(one, paper[one.dataset]))
    typer.echo(f"runs     {results / CALIBRATION_CSV}")


def calibration(
    results: RESULTS = Path("results"),
    docs: DOCS = Path("docs"),
    as_json: JSON = False,
) -> None:
    """Write docs/calibration.md: every cell tried on the baselines."""
    from tempergat.study.tuning.calibration_page import reproduce_calibration

    found, page = reproduce_calibration(results, docs)
    if as_json:
        facts = _calibration_json(found) | {"page": str(page)}
        typer.echo(json.dumps(facts, indent=1, allow_nan=False))
        return
    for one in found:
        settings = ", ".join(f"{k} {v}" for k, v in one.chosen.settings.items())
        typer.echo(f"{one.dataset}: {settings} (misfit {one.chosen.misfit:.1f})")
    typer.echo(f"wrote {page}")


def tuned(
    results: RESULTS = Path("results"),
    docs: DOCS = Path("docs"),
    as_json: JSON = False,
) -> None:
    """Write docs/tuned.md: the searched settings and their test scores."""
    from tempergat.study.report.tables import as_json as result_json
    from tempergat.study.tuning.tuned_page import reproduce_tuned

    found, page = reproduce_tuned(results, docs)
    if as_json:
        facts: dict[str, Any] = {
            "datasets": [
                {**result_json(one.result), "trials": one.trials} for one in found
            ],
            "page": str(page),
        }
        typer.echo(json.dumps(facts, indent=1, allow_nan=False))
        return
    for one in found:
        typer.echo(f"{one.plan.dataset}: {one.verdict}")
    typer.echo(f"wrote {page}")


def _best(trials: list["Trial"]) -> dict["Backbone", "Trial"]:
    from tempergat.study.tuning.plans import BACKBONES
    from tempergat.study.tuning.search import best_trial

    return {
        backbone: best_trial([t for t in trials if t.backbone == backbone])
        for backbone in BACKBONES
    }


def _trial_line(trial: "Trial", trials: int) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in trial.settings.items())
    score = "a run failed" if trial.score is None else f"{trial.score:.2f}"
    return f"{trial.backbone} {trial.number + 1}/{trials}: {score} ({settings})"


def _progress_lines(console: "Console", name: str) -> "Callable[[Progress], None]":
    from tempergat.cli.ui.progress import duration

    started = time.monotonic()

    def show(progress: "Progress") -> None:
        if progress.new:
            spent = duration(time.monotonic() - started)
            console.print(
                f"{name}: {progress.runs_done} of {progress.runs} runs, {spent}"
            )

    return show


def _calibration_json(
    found: "tuple[DatasetCalibration, ...] | list[DatasetCalibration]",
) -> dict[str, Any]:
    return {
        "datasets": [
            {
                "dataset": one.dataset,
                "chosen": dict(one.chosen.settings),
                "cells": [
                    {
                        "settings": dict(cell.settings),
                        "baselines": {k: asdict(v) for k, v in cell.baselines.items()},
                        "standard_errors": dict(cell.distances),
                    }
                    for cell in one.cells
                ],
            }
            for one in found
        ]
    }


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C says how to go on."""
    try:
        yield
    except KeyboardInterrupt as stop:
        typer.echo(
            f"Stopped; finished runs are kept. To go on:\n  {resume_command()}",
            err=True,
        )
        raise typer.Exit(exit_status(stop)) from stop
