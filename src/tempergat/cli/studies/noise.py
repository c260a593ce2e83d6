"""`tempergat noise`: every method trained under controlled noise."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.base import UserError
from tempergat.cli.options.completion import complete_datasets
from tempergat.cli.options.help_text import examples
from tempergat.cli.options.reading import Reading, with_reading_options
from tempergat.cli.options.shared import (
    DeviceName,
    Json,
    OutFolder,
    Quiet,
    RecipeName,
    parse_device,
    require_writable,
)
from tempergat.cli.ui.graphs import load_graph, refuse_unknown_name
from tempergat.cli.ui.json_output import print_json
from tempergat.cli.ui.output import echo
from tempergat.cli.ui.stopping import resume_command, stoppable

if TYPE_CHECKING:
    from rich.console import Console

    from tempergat.data import Dataset
    from tempergat.study.engine import Progress
    from tempergat.study.noise import NoisePlan
    from tempergat.training import Recipe, Run


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog=examples(
            "tempergat noise --datasets cora --seeds 5",
            "tempergat noise --only-report",
        )
    )(with_reading_options(noise))


def noise(
    datasets: Annotated[
        str | None,
        typer.Option(
            help="Datasets like cora,pubmed; the plan's when left out.",
            autocompletion=complete_datasets,
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="How many; the plan's when left out.")
    ] = None,
    levels: Annotated[
        Path | None,
        typer.Option(help="A plan with other levels, methods or seeds; a YAML file."),
    ] = None,
    recipe: RecipeName = None,
    *,
    reading: Reading,
    device: DeviceName = "auto",
    out: OutFolder = Path("tempergat-out/noise"),
    docs: Annotated[
        Path | None,
        typer.Option(help="Where the page and its figures go; --out when left out."),
    ] = None,
    only_train: Annotated[
        bool,
        typer.Option("--only-train", help="Train and store the runs, write no page."),
    ] = False,
    only_report: Annotated[
        bool, typer.Option("--only-report", help="Train nothing, write the page.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train every method under controlled noise.

    Writes a page and a report. Runs are stored in the --out folder group by group: the
    same command continues where it was stopped. Exit status: 0 done, 1 some runs
    failed, 2 bad usage or input.
    """
    if only_train and only_report:
        raise UserError("--only-train and --only-report leave nothing to do; give one")
    chosen = None if datasets is None else _names(datasets)
    for name in chosen or ():
        refuse_unknown_name(name)
    from tempergat.cli.ui.tables import error_console
    from tempergat.study.noise import load_plan

    plan = load_plan(levels, seeds)
    if not only_train and min(len(plan.gaussian), len(plan.missing)) == 1:
        raise UserError(
            "the plan has one kind of noise, and the page shows both; give "
            "--only-train, or a plan with both"
        )
    names = chosen or plan.datasets
    where = parse_device(device)
    console = None if quiet else error_console()
    if not only_report:
        require_writable(out)
        # Load all graphs first: a wrong name is then found before anything is trained.
        graphs = [_load(name, recipe, console, reading) for name in names]
        with stoppable("finished groups are kept"):
            trained = {
                graph.name: _train(graph, settings, plan, out, where, console)
                for graph, settings in graphs
            }
        if only_train:
            _print_trained(trained, out, as_json)
            return
    _report(plan, out, docs or out, as_json)


def _print_trained(trained: dict[str, "list[Run]"], out: Path, as_json: bool) -> None:
    found = [
        {
            "dataset": name,
            "runs": len(runs),
            "failed": sum(run.status == "failed" for run in runs),
            "file": str(out / f"{name}.csv"),
        }
        for name, runs in trained.items()
    ]
    if as_json:
        print_json({"datasets": found})
    else:
        for facts in found:
            echo("{dataset}: {runs} runs, {failed} failed, in {file}".format(**facts))
    if any(facts["failed"] for facts in found):
        raise typer.Exit(1)


def _report(plan: "NoisePlan", out: Path, docs: Path, as_json: bool) -> None:
    from tempergat.study.noise import as_json as to_json
    from tempergat.study.noise import write_noise_report, write_page

    found = write_page(plan, out, docs)
    report = write_noise_report(plan, found, out / "noise.html", resume_command())
    failed = any(run.status == "failed" for dataset in found for run in dataset.runs)
    if as_json:
        content = {
            "datasets": to_json(found),
            "page": str(docs / "noise.md"),
            "report": str(report),
        }
        print_json(content)
    else:
        for dataset in found:
            echo(dataset.sentence)
        echo(f"wrote {docs / 'noise.md'}")
        echo(f"report   {report}")
    if failed:
        raise typer.Exit(1)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if not names:
        raise UserError(f"--datasets is {text!r}; name some, like cora,pubmed")
    return names


def _load(
    name: str, recipe: str | None, console: "Console | None", reading: Reading
) -> tuple["Dataset", "Recipe"]:
    from tempergat.training import recipe_for, refuse_other_training, refuse_typed

    recipe_name, settings = recipe_for(name, recipe)
    settings.require_usual_metric(recipe_name, "noise")
    settings.require_full_batch(recipe_name, "noise")
    graph = load_graph(name, None, None, console, reading)
    refuse_other_training(graph, settings.config_for("gat"))
    refuse_typed(graph, "the study of noise")
    return graph, settings


def _train(
    graph: "Dataset",
    settings: "Recipe",
    plan: "NoisePlan",
    out: Path,
    device: Any,
    console: "Console | None",
) -> "list[Run]":
    from tempergat.base import duration
    from tempergat.study.noise import run_noise, variant_of_config

    def say(progress: "Progress") -> None:
        if console is None or progress.config is None or progress.epoch:
            return
        variant = variant_of_config(progress.config)
        console.print(
            f"{graph.name}: {variant}; {progress.runs_done} of "
            f"{progress.runs} runs, about {duration(progress.time_left_s or 0)} left"
        )

    return run_noise(graph, settings, plan, out / f"{graph.name}.csv", device, say)
