"""`tempergat noise` and `tempergat diagnose`: what noise does, and what a graph has."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.base.errors import UserError
from tempergat.cli.graphs import load_graph, load_settings
from tempergat.cli.ui.options import (
    DatasetName,
    DeviceName,
    Json,
    OutFolder,
    Quiet,
    RecipeName,
    Split,
    SplitSeed,
    choose_device,
    describe,
    parse_methods,
    require_writable,
    resume_command,
)
from tempergat.cli.ui.signals import exit_status

if TYPE_CHECKING:
    from rich.console import Console

    from tempergat.data import Dataset
    from tempergat.study.diagnose.screening import Diagnosis, Screened
    from tempergat.study.noise.plan import NoisePlan
    from tempergat.study.noise.rows import NoiseRow
    from tempergat.study.noise.runs import NoiseProgress
    from tempergat.training import Recipe

STORE_NAME = "diagnose.sqlite"


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(noise)
    app.command()(diagnose)


def noise(
    datasets: Annotated[
        str | None,
        typer.Option(help="Datasets like cora,pubmed; the plan's when left out."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="How many; the plan's when left out.")
    ] = None,
    levels: Annotated[
        Path | None,
        typer.Option(help="A plan of your own: levels, methods, seeds; a YAML file."),
    ] = None,
    recipe: RecipeName = None,
    device: DeviceName = "auto",
    out: OutFolder = Path("results/noise"),
    docs: Annotated[
        Path, typer.Option(help="Where the page and its figures go.")
    ] = Path("docs"),
    only_train: Annotated[
        bool, typer.Option("--only-train", help="Keep the runs, write no page.")
    ] = False,
    only_report: Annotated[
        bool, typer.Option("--only-report", help="Train nothing, write the page.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train every method under controlled noise; write docs/noise.md.

    Runs are kept in the --out folder group by group: the same command goes on where it
    was stopped. Exit status: 0 done, 1 some runs failed, 2 bad usage or input.
    """
    from tempergat.cli.ui.tables import error_console
    from tempergat.study.noise.plan import load_plan

    if only_train and only_report:
        raise UserError("--only-train and --only-report leave nothing to do; give one")
    plan = load_plan(levels)
    if seeds is not None:
        plan = plan.model_copy(update={"seeds": seeds})
    names = plan.datasets if datasets is None else _names(datasets)
    where = choose_device(device)
    console = None if quiet else error_console()
    if not only_report:
        require_writable(out)
        # All of them now, so that no work is lost when the turn of one comes.
        graphs = [_load(name, recipe, console) for name in names]
        try:
            kept = {
                graph.name: _train(graph, settings, plan, out, where, console)
                for graph, settings in graphs
            }
        except KeyboardInterrupt as stop:
            typer.echo(
                f"Stopped; finished groups are kept. To go on:\n  {resume_command()}",
                err=True,
            )
            raise typer.Exit(exit_status(stop)) from stop
        if only_train:
            _tell_trained(kept, out, as_json)
            return
    _report(plan, out, docs, as_json)


def _tell_trained(kept: dict[str, "list[NoiseRow]"], out: Path, as_json: bool) -> None:
    found = [
        {
            "dataset": name,
            "runs": len(rows),
            "failed": sum(not row.scores for row in rows),
            "file": str(out / f"{name}.csv"),
        }
        for name, rows in kept.items()
    ]
    if as_json:
        typer.echo(json.dumps({"datasets": found}, indent=1))
    else:
        for facts in found:
            typer.echo(
                "{dataset}: {runs} runs, {failed} failed, in {file}".format(**facts)
            )
    if any(facts["failed"] for facts in found):
        raise typer.Exit(1)


def _report(plan: "NoisePlan", out: Path, docs: Path, as_json: bool) -> None:
    from tempergat.study.noise.analysis import as_json as to_json
    from tempergat.study.noise.page import write_page

    found = write_page(plan, out, docs)
    failed = sum(not row.scores for dataset in found for row in dataset.rows)
    if as_json:
        content = {"datasets": to_json(found), "page": str(docs / "noise.md")}
        typer.echo(json.dumps(content, indent=1, allow_nan=False))
    else:
        for dataset in found:
            rising = sum(t.direction == "rises" for t in dataset.temperature)
            falling = sum(t.direction == "falls" for t in dataset.gate)
            typer.echo(
                f"{dataset.dataset}: {len(dataset.rows)} of {dataset.expected_runs} "
                f"runs; T rises with sigma in {rising} of {len(dataset.temperature)} "
                f"layers and variants, the gate falls with rho in {falling} of "
                f"{len(dataset.gate)}"
            )
        typer.echo(f"wrote {docs / 'noise.md'}")
    if failed:
        raise typer.Exit(1)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if not names:
        raise UserError(f"--datasets is {text!r}; name some, like cora,pubmed")
    return names


def _load(
    name: str, recipe: str | None, console: "Console | None"
) -> tuple["Dataset", "Recipe"]:
    from tempergat.training.task import refuse_other_training

    _, settings = load_settings(name, recipe)
    graph = load_graph(name, None, None, console)
    refuse_other_training(graph, settings.config_for("gat"))
    return graph, settings


def _train(
    graph: "Dataset",
    settings: "Recipe",
    plan: "NoisePlan",
    out: Path,
    device: Any,
    console: "Console | None",
) -> "list[NoiseRow]":
    from tempergat.cli.ui.progress import duration
    from tempergat.study.noise.runs import run_noise

    if console is not None:
        console.print(describe(graph))

    def say(progress: "NoiseProgress") -> None:
        if console is not None and progress.epoch == 0:
            console.print(
                f"{progress.dataset}: {progress.variant}; {progress.runs_done} of "
                f"{progress.runs} runs, about {duration(progress.time_left_s or 0)} "
                "left"
            )

    return run_noise(graph, settings, plan, out / f"{graph.name}.csv", device, say)


def diagnose(
    data: DatasetName,
    runs: Annotated[
        int | None, typer.Option(min=2, help="Seeds per method; 10 when left out.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Most epochs of a run; 100 if left out.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Methods to screen; the paper's eleven when left out."),
    ] = None,
    recipe: RecipeName = None,
    split: Split = None,
    split_seed: SplitSeed = None,
    device: DeviceName = "auto",
    out: OutFolder = Path("tempergat-out"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure a graph, screen methods on it and say what that shows.

    Methods are judged on validation nodes; test nodes play no part. Nothing is
    recommended: see docs/diagnose.md for why. To choose a method, use compare.
    """
    from tempergat.cli.ui.progress import duration
    from tempergat.cli.ui.tables import error_console, output_console
    from tempergat.study.diagnose import screening as study
    from tempergat.study.engine.store import Store
    from tempergat.study.engine.sweep import Progress

    names = study.SCREENED if methods is None else parse_methods(methods)
    _, settings = load_settings(data, recipe)
    where = choose_device(device)
    require_writable(out)
    console = error_console()
    with Store(out / STORE_NAME) as store:
        graph = load_graph(data, split, split_seed, None if quiet else console)
        if not quiet:
            console.print(describe(graph))

        def say(progress: Progress) -> None:
            # Not the display of `compare`, which shows test scores.
            if progress.new and not quiet:
                left = duration(progress.time_left_s or 0.0)
                console.print(
                    f"{progress.runs_done} of {progress.runs} runs, about {left} left"
                )

        try:
            found = study.diagnose(
                graph,
                settings,
                store,
                where,
                methods=names,
                runs=study.SCREENING_RUNS if runs is None else runs,
                epochs=study.SCREENING_EPOCHS if epochs is None else epochs,
                on_progress=say,
            )
        except KeyboardInterrupt as stop:
            console.print(
                f"Stopped; finished runs are kept. To go on:\n  {resume_command()}"
            )
            raise typer.Exit(exit_status(stop)) from stop
    if as_json:
        typer.echo(json.dumps(study.as_json(found), indent=1, allow_nan=False))
        return
    _print_diagnosis(output_console(), found)


def _print_diagnosis(console: "Console", found: "Diagnosis") -> None:
    from tempergat.cli.ui.tables import print_table
    from tempergat.study.report.tables import Table, mean_and_std, p_value, signed

    for line in _measured(found):
        console.print(line)
    rows = tuple(
        (
            entry.method,
            mean_and_std(entry.summary.mean, entry.summary.std),
            "-"
            if entry.against_best is None
            else signed(entry.against_best.difference),
            "-" if entry.against_best is None else p_value(entry.against_best.t_p_holm),
            f"{100 * entry.best_in:.0f} %",
            _place(entry),
        )
        for entry in found.screening.screened
    )
    columns = ("method", "validation", "to best", "p", "comes first", "verdict")
    notes = [
        f"{found.runs} runs of {found.epochs} epochs, scored on validation nodes; p: "
        "paired t-test, Holm-corrected; comes first: in resamplings of the seeds.",
        "An accuracy on so many validation nodes has a standard error of "
        f"{found.screening.luck:.1f} points: smaller differences may be luck.",
    ]
    if found.screening.failed:
        notes.append(f"No run finished of {', '.join(found.screening.failed)}.")
    print_table(
        console, Table(f"{found.dataset}: screening", columns, rows, tuple(notes))
    )
    console.print(found.screening.sentence)


def _place(entry: "Screened") -> str:
    if entry.against_best is None:
        return "highest mean"
    return "not told apart" if entry.is_alike else "worse"


def _measured(found: "Diagnosis") -> list[str]:
    m = found.measurements

    def number(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.3g}"

    return [
        f"feature signal-to-noise {number(m.own.signal_to_noise)}, of neighbourhood "
        f"means {number(m.neighbours.signal_to_noise)} (variance between classes over "
        f"within, {m.train_nodes:,} training nodes)",
        f"coordinates that tell classes apart: {_share(m.own.reliable_share)}; the "
        f"best tenth of all carries {_share(m.own.top_tenth_share)} of the signal",
        f"non-zero feature entries: {_share(m.density)}; edges inside a class: "
        f"{_share(m.edge_homophily)} of {m.labelled_edges:,} labelled ones, beyond "
        f"chance {number(m.adjusted_homophily)}; mean degree {m.mean_degree:.1f}",
    ]


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.1f} %"
