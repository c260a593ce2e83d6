"""`tempergat reproduce`: pages made from results/, and the runs that results/ lacks."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempergat.base import UserError
from tempergat.cli.options.completion import complete_datasets
from tempergat.cli.options.help_text import examples
from tempergat.cli.options.shared import (
    DeviceName,
    Json,
    OutFolder,
    Quiet,
    parse_device,
    parse_names,
    require_writable,
)
from tempergat.cli.ui.graphs import refuse_unknown_name
from tempergat.cli.ui.json_output import print_json
from tempergat.cli.ui.output import echo
from tempergat.cli.ui.spinner import spinner
from tempergat.cli.ui.stopping import stoppable

if TYPE_CHECKING:
    from tempergat.study.reproduce import JobPlan, Outcome, Page, PagePlan, Workspace

RESULTS = Annotated[Path, typer.Option(help="The project's folder of results.")]
DOCS = Annotated[Path, typer.Option(help="Where the page and its figures go.")]

# The names are those of `study.reproduce.PAGES`, which takes a second to import.
PAGE_HELP = {
    "homogeneous": "Write docs/reproduction.md: the paper's first table.",
    "heterogeneous": "The paper's second table, when it has runs.",
    "ranks": "Write docs/ranks.md: average ranks of the methods.",
    "calibration": "Write docs/calibration.md: settings tried on the baselines.",
    "tuned": "Write docs/tuned.md: every method with searched settings.",
    "noise": "Write docs/noise.md: every method under controlled noise.",
    "diagnose": "Write docs/diagnose.md: does a screening pick well?",
    "when": "Write docs/when.md: gate, residual or temperature?",
    "default": "Write docs/default.md: how the default recipe was chosen.",
    "theory": "Draw the figures of docs/theory.md.",
}

# Pages about graphs that are not all in the catalogue.
_WITH_OTHER_GRAPHS = ("default", "diagnose", "when")

reproduce_app = typer.Typer(
    no_args_is_help=True,
    help="Make pages of docs/ from results/, and the runs they need.\n\n"
    "Each page is also written as one HTML file.",
    epilog=examples("tempergat reproduce ranks", "tempergat reproduce noise --plan"),
)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for name, text in PAGE_HELP.items():
        shown = examples(
            f"tempergat reproduce {name}", f"tempergat reproduce {name} --plan"
        )
        reproduce_app.command(name, help=text, epilog=shown)(_command_for(name))
    reproduce_app.command(
        epilog=examples(
            "tempergat reproduce export tempergat-out/store.sqlite --to runs.csv",
            "tempergat reproduce export first.sqlite second.sqlite",
        )
    )(export)
    app.add_typer(reproduce_app, name="reproduce")


def _command_for(name: str) -> Callable[..., None]:
    def command(
        plan: Annotated[
            bool,
            typer.Option(
                "--plan",
                help="Print what is missing and the training it needs; train nothing.",
            ),
        ] = False,
        run: Annotated[
            bool,
            typer.Option("--run", help="Train what is missing, then write the page."),
        ] = False,
        datasets: Annotated[
            str | None,
            typer.Option(
                help="With --run or --plan: only these, like cora,pubmed.",
                autocompletion=complete_datasets,
            ),
        ] = None,
        results: RESULTS = Path("results"),
        docs: DOCS = Path("docs"),
        device: DeviceName = "auto",
        out: OutFolder = Path("tempergat-out/reproduce"),
        as_json: Json = False,
        quiet: Quiet = False,
    ) -> None:
        if plan and run:
            raise UserError("--plan and --run were both given; give one of them")
        if datasets is not None and not (plan or run):
            raise UserError("--datasets needs --run or --plan; the page has them all")
        chosen = None if datasets is None else parse_names(datasets, "--datasets")
        if name not in _WITH_OTHER_GRAPHS:
            for dataset in chosen or ():
                refuse_unknown_name(dataset)
        with spinner("starting", quiet=quiet):
            page = _page(name)
        if plan or run:
            workspace = _workspace(results, out, device, quiet=quiet or plan)
        if plan:
            from tempergat.study.reproduce import plan_page

            _print_plan(plan_page(page, workspace, docs, chosen), as_json)
            return
        outcome = _run(page, workspace, chosen, quiet) if run else None
        _write(page, results, docs, out, outcome, as_json)

    return command


def export(
    stores: Annotated[
        list[Path], typer.Argument(metavar="STORE", help="Stores of finished runs.")
    ],
    to: Annotated[Path, typer.Option(help="The CSV to write.")] = Path(
        "tempergat-out/runs.csv"
    ),
    as_json: Json = False,
) -> None:
    """Write the runs of stores as CSV, one row per run.

    An existing CSV keeps the rows of datasets that the stores lack.
    """
    from tempergat.study.engine import export_stores

    merged = export_stores(stores, to)
    if as_json:
        print_json(
            {
                "runs": sum(merged.written.values()),
                "replaced": dict(merged.replaced),
                "kept": dict(merged.kept),
                "file": str(to),
            }
        )
        return
    echo(merged.sentence)


def _page(name: str) -> "Page":
    if name == "theory":
        # `study` and `theory` do not import each other.
        from tempergat.cli.studies.theory_page import theory_page

        return theory_page()
    from tempergat.study.reproduce import PAGES

    return PAGES[name]


def _workspace(results: Path, out: Path, device: str, *, quiet: bool) -> "Workspace":
    from tempergat.cli.ui.graphs import load_graph
    from tempergat.cli.ui.progress import progress_lines
    from tempergat.cli.ui.tables import error_console
    from tempergat.study.reproduce import Workspace

    console = None if quiet else error_console()
    return Workspace(
        results,
        out,
        parse_device(device),
        load=lambda name: load_graph(name, None, None, console),
        watch=lambda name: None if console is None else progress_lines(console, name),
    )


def _run(
    page: "Page", workspace: "Workspace", datasets: list[str] | None, quiet: bool
) -> "Outcome":
    from tempergat.study.reproduce import run_page

    require_writable(workspace.out)
    require_writable(workspace.results)
    with stoppable():
        return run_page(
            page,
            workspace,
            datasets,
            say=lambda line: None if quiet else echo(line, err=True),
        )


def _write(
    page: "Page",
    results: Path,
    docs: Path,
    out: Path,
    outcome: "Outcome | None",
    as_json: bool,
) -> None:
    from tempergat.study.reproduce import write_page_report

    written = page.write(results, docs)
    report = write_page_report(page, written, results, out / f"{page.name}.html")
    if as_json:
        facts = written.facts | {"report": str(report)}
        if outcome is not None:
            facts = facts | {
                "made": list(outcome.done),
                "not_made": dict(outcome.not_done),
            }
        print_json(facts)
    else:
        for line in (*(outcome.done if outcome else ()), *written.lines):
            echo(line)
        echo(f"wrote {written.path}")
        echo(f"report   {report}")
    if outcome is not None and outcome.not_done:
        for dataset, reason in outcome.not_done.items():
            echo(f"{dataset}: not complete: {reason}", err=True)
        raise typer.Exit(1)


def _print_plan(plan: "PagePlan", as_json: bool) -> None:
    if as_json:
        print_json(plan.as_json())
        return
    echo(f"reproduce {plan.page} --run, on {plan.device}:")
    for job in plan.jobs:
        echo(f"{job.dataset}: {job.present} of {job.needed} {job.unit} in {job.file}")
        for line in _job_lines(job, plan.device):
            echo(f"  {line}")
    if all(job.present >= job.needed for job in plan.jobs):
        echo("nothing is missing: --run trains nothing and writes the page")
    echo("writes:")
    for file in plan.writes:
        echo(f"  {file}")


def _job_lines(job: "JobPlan", device: str) -> list[str]:
    from tempergat.base import duration

    lines = [f"files: {job.graph_files}"]
    if job.disk_bytes:
        lines.append(f"disk: about {job.disk_bytes / 2**30:.2f} GiB")
    if job.elsewhere:
        found = ", ".join(f"{count} on {name}" for name, count in job.elsewhere.items())
        lines.append(
            f"{found}: not combined with runs on {device}, so --run trains all "
            f"{job.needed} and replaces them"
        )
    if job.present >= job.needed:
        return lines
    time = "unknown" if job.time_s is None else f"about {duration(job.time_s)}"
    kind = "" if job.time_s is None else "estimated "
    lines.append(f"time: {time} ({kind}{job.time_source})")
    memory = "unknown until the files are here"
    if job.memory_bytes is not None:
        memory = f"about {job.memory_bytes / 2**30:.2f} GiB (estimate)"
    lines.append(f"memory: {memory}")
    return lines
