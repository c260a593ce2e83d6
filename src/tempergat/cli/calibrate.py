"""`tempergat calibrate`: settings the paper leaves out, and their page."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.cli.graphs import load_graph
from tempergat.cli.reproduce import DOCS, JSON, RESULTS, reproduce_app
from tempergat.cli.ui.options import (
    DeviceName,
    Json,
    OutFolder,
    Quiet,
    parse_device,
    require_writable,
)
from tempergat.cli.ui.spinner import waiting
from tempergat.cli.ui.stopping import stoppable

if TYPE_CHECKING:
    from rich.console import Console

    from tempergat.study.engine import Progress
    from tempergat.study.tuning.calibrate import DatasetCalibration

STORE_NAME = "store.sqlite"


def register(app: typer.Typer) -> None:
    """Add the command to the application, and its page to `reproduce`."""
    app.command()(calibrate)
    reproduce_app.command()(calibration)


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
        from tempergat.study.engine import Store, export_runs
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
        where = parse_device(device)
        require_writable(out)
    console = error_console()
    found = []
    with stoppable(), Store(out / STORE_NAME) as store:
        for name in names:
            graph = load_graph(name, None, None, None if quiet else console)
            show = None if quiet else _progress_lines(console, name)
            found.append(study.calibrate(graph, plan, paper[name], store, where, show))
        merged = export_runs(store, results / CALIBRATION_CSV, names)
    if as_json:
        typer.echo(json.dumps(_calibration_json(found), indent=1, allow_nan=False))
        return
    for one in found:
        print_table(output_console(), calibration_table(one, paper[one.dataset]))
    typer.echo(merged.sentence)


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


def _progress_lines(console: "Console", name: str) -> "Callable[[Progress], None]":
    from tempergat.base import duration

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
