"""`tempergat compare`: which method wins on a graph, and is it real?"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempergat.base import UserError
from tempergat.cli.ui.graphs import DEMONSTRATION, load_splits, refuse_unknown_name
from tempergat.cli.ui.json_output import print_json
from tempergat.cli.ui.options import (
    DEFAULT_RUNS,
    DeviceName,
    Json,
    OutFolder,
    Quiet,
    RecipeName,
    Split,
    SplitSeed,
    parse_device,
    parse_methods,
    parse_runs,
    require_writable,
)
from tempergat.cli.ui.output import echo
from tempergat.cli.ui.reading import Reading, with_reading_options
from tempergat.cli.ui.settings import Settings, with_settings_options
from tempergat.cli.ui.spinner import spinner
from tempergat.cli.ui.stopping import exit_status, resume_command, stoppable

if TYPE_CHECKING:
    from rich.console import Console

    from tempergat.study import Comparison
    from tempergat.study.comparison import FinishedShard, Place, Plan


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(with_settings_options(with_reading_options(compare)))


def compare(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET|PATH",
            help="A name (`tempergat data list`) or the path of your own graph; a "
            "generated graph with both kinds of noise when left out.",
            show_default=False,
        ),
    ] = DEMONSTRATION,
    runs: Annotated[
        str, typer.Option(help="Seeds per method; paper for as many as the recipe.")
    ] = str(DEFAULT_RUNS),
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods like gat,temp_gated; the paper's eleven when left out."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="The method all others are compared with; each variant's backbone "
            "when left out.",
        ),
    ] = None,
    recipe: RecipeName = None,
    split: Split = None,
    split_seed: SplitSeed = None,
    splits: Annotated[
        int | None,
        typer.Option(
            help="Number of splits to make for a graph that comes with none; the runs "
            "take turns over them.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            help="Print the tables of a store or of an output folder, and train "
            "nothing; DATASET then names one of its graphs.",
            show_default=False,
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            help="Train one of several parts of the runs, like 1/3 on the first of "
            "three machines; `tempergat merge` puts their stores together.",
            metavar="I/N",
            show_default=False,
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Train on a Ray cluster: auto for the one on this machine, or the "
            "address of its head.",
            metavar="auto|HOST:PORT",
            show_default=False,
        ),
    ] = None,
    *,
    settings: Settings,
    reading: Reading,
    device: DeviceName = "auto",
    out: OutFolder = Path("tempergat-out"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which method wins on a graph, and is it real?

    Trains every method over many seeds and says which differences are larger than
    noise. Where a graph has several splits, the seeds take turns over them. Finished
    runs are kept in the --out folder: the same command continues where it was
    stopped, and trains nothing twice. Exit status: 0 done, 1 some runs failed, 2 bad
    usage or input.
    """
    if table is not None:
        _show_stored(table, dataset, baseline, as_json)
        return
    refuse_unknown_name(dataset)
    chosen = None if methods is None else parse_methods(methods)
    with spinner("starting", quiet=quiet):
        from tempergat.cli.ui.progress import make_display
        from tempergat.cli.ui.tables import error_console
        from tempergat.study import comparison as study
        from tempergat.study.engine import Shard, Store
        from tempergat.training import OutOfMemory

        plan = study.make_plan(
            dataset,
            chosen,
            parse_runs(runs),
            recipe,
            baseline,
            settings.overrides(),
        )
        only = None if shard is None else Shard.parse(shard)
        if only is not None and ray is not None:
            raise UserError("a shard needs no Ray cluster; give --shard or --ray")
        stderr = error_console()
    # Before a download, which would otherwise be wasted.
    require_writable(out)
    with _place(ray, device) as where:
        graphs = load_splits(
            dataset,
            split,
            split_seed,
            len(plan.seeds),
            None if quiet else stderr,
            reading,
            splits,
        )
        if not quiet:
            for line in study.opening_lines(plan, graphs, where):
                stderr.print(line)
        with Store(out / study.STORE_NAME) as store:
            if only is not None:
                with stoppable(), make_display(stderr, plan, quiet=quiet) as display:
                    done = study.run_shard(plan, graphs, store, where, only, display)
                _show_shard(done, as_json)
                return
            try:
                with make_display(stderr, plan, quiet=quiet) as display:
                    comparison = study.run_plan(plan, graphs, store, where, display)
            except KeyboardInterrupt as stop:
                part = study.finished_part(plan, graphs, store, where)
                _show_so_far(part, plan, stderr, as_json)
                raise typer.Exit(exit_status(stop)) from stop
            except OutOfMemory:
                # The other methods have finished.
                part = study.finished_part(plan, graphs, store, where)
                if part is not None:
                    _show(part.written_to(out), as_json)
                raise
    _show(comparison.written_to(out), as_json)
    if any(method.summary.failed for method in comparison.result.results):
        raise typer.Exit(1)


@contextmanager
def _place(ray: str | None, device: str) -> "Iterator[Place]":
    """A device of this machine, or the workers of a Ray cluster."""
    if ray is None:
        yield parse_device(device)
        return
    from tempergat.study.machines import RayWorkers

    with RayWorkers(ray, device) as workers:
        yield workers


def _show(comparison: "Comparison", as_json: bool) -> None:
    from tempergat.cli.ui.tables import output_console, print_table

    if as_json:
        echo(comparison.to_json())
        return
    print_table(output_console(), comparison.text_table)
    if comparison.files:
        echo(comparison.verdict)
        *tables, _, picture = comparison.files
        echo(f"picture  {picture}")
        echo(f"tables   {', '.join(str(path) for path in tables)}")
        echo(f"runs     {comparison.store}")


def _show_shard(shard: "FinishedShard", as_json: bool) -> None:
    if as_json:
        print_json(shard.facts)
    else:
        echo(str(shard))
    if shard.failed:
        raise typer.Exit(1)


def _show_stored(
    table: Path, dataset: str, baseline: str | None, as_json: bool
) -> None:
    """Print the comparisons of a store; the list of them as JSON."""
    from tempergat.study.comparison import stored_comparisons

    name = None if dataset == DEMONSTRATION else dataset
    found = stored_comparisons(table, name, baseline)
    if as_json:
        print_json([comparison.facts for comparison in found])
        return
    for number, comparison in enumerate(found):
        if number:
            echo("")
        _show(comparison, as_json)
        echo(comparison.verdict)
        echo(f"settings {comparison.recipe}, on {comparison.device}")


def _show_so_far(
    part: "Comparison | None", plan: "Plan", stderr: "Console", as_json: bool
) -> None:
    if part is None:
        stderr.print("Stopped before the first runs finished. To continue:")
    else:
        _show(part, as_json)
        stderr.print(
            f"Stopped with {len(part.runs)} of {plan.total_runs} runs done; they are "
            "kept. Differences and verdicts may change with the rest. To continue:"
        )
    stderr.print(f"  {resume_command()}", soft_wrap=True)
