"""`tempergat compare`: which method wins on a graph, and is it real?"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempergat.base import UserError
from tempergat.cli.options.completion import complete_dataset, complete_methods
from tempergat.cli.options.help_text import examples
from tempergat.cli.options.reading import Reading, with_reading_options
from tempergat.cli.options.settings import Settings, with_settings_options
from tempergat.cli.options.shared import (
    DEFAULT_RUNS,
    Baseline,
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
from tempergat.cli.ui.comparing import (
    GraphSweep,
    show_shard,
    show_stored,
    show_together,
)
from tempergat.cli.ui.graphs import DEMONSTRATION, load_splits, refuse_unknown_name
from tempergat.cli.ui.output import echo
from tempergat.cli.ui.spinner import spinner
from tempergat.cli.ui.stopping import resume_command

if TYPE_CHECKING:
    from tempergat.comparison import Place


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog=examples(
            "tempergat compare cora",
            "tempergat compare path/to/my/graph --runs 20 --methods gat,temp_gated",
            "tempergat compare cora citeseer --out results-of-two",
        )
    )(with_settings_options(with_reading_options(compare)))


def compare(
    datasets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATASET|PATH",
            help="A name (`tempergat data list`) or the path of your own graph, or "
            "several; a generated graph with both kinds of noise when left out.",
            show_default=False,
            autocompletion=complete_dataset,
        ),
    ] = None,
    runs: Annotated[
        str,
        typer.Option(
            help="Seeds per method; paper for as many as the recipe, and for the "
            "paper's methods alone."
        ),
    ] = str(DEFAULT_RUNS),
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods like gat,temp_gated; the paper's eleven and mlp when left "
            "out.",
            autocompletion=complete_methods,
        ),
    ] = None,
    baseline: Baseline = None,
    recipe: RecipeName = None,
    split: Split = None,
    split_seed: SplitSeed = None,
    splits: Annotated[
        int | None,
        typer.Option(
            help="Number of splits to make for a graph that comes with none; the runs "
            "take turns over them. Of several graphs, those with splits keep them.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            help="Print the tables of a store or of an output folder, and train "
            "nothing; DATASET then names graphs of it.",
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
    tune: Annotated[
        int | None,
        typer.Option(
            help="Settings to try for each method beforehand, by validation score; the "
            "runs compared have other seeds.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="Noise on the features of every run: gaussian:0.5 adds Gaussian noise "
            "of half their root mean square, missing:0.3 sets 30 % of the values to 0.",
            metavar="KIND:LEVEL",
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
    noise. Where a graph has several splits, the seeds take turns over them. Several
    graphs are compared on one after another, each with its own recipe and metric, and
    summed up by average ranks, wins, ties and losses. With --tune, every method first
    gets its own search of as many settings on each split, judged by validation nodes of
    that split alone (needs pip install 'tempergat[tune]'), and the settings found are
    also written as a recipe for --recipe. Finished runs are kept in the --out folder:
    the same command continues where it was stopped, and trains nothing twice. Exit
    status: 0 done, 1 some runs failed, 2 bad usage or input.
    """
    names = datasets or [DEMONSTRATION]
    if table is not None:
        if tune is not None:
            raise UserError(
                "--table prints what a store holds and searches nothing; leave out "
                "--tune, tuned runs are shown too"
            )
        show_stored(table, [] if names == [DEMONSTRATION] else names, baseline, as_json)
        return
    for name in names:
        refuse_unknown_name(name)
    chosen = None if methods is None else parse_methods(methods)
    with spinner("starting", quiet=quiet):
        from tempergat import comparison
        from tempergat.cli.ui.tables import error_console

        plans = [
            comparison.make_plan(
                name,
                chosen,
                parse_runs(runs),
                recipe,
                baseline,
                settings.overrides(),
                tune,
                noise,
            )
            for name in names
        ]
        only = None if shard is None else comparison.Shard.parse(shard)
        if tune is not None:
            comparison.refuse_tuned_shard(only)
        if only is not None and ray is not None:
            raise UserError("a shard needs no Ray cluster; give --shard or --ray")
        stderr = error_console()
    # Before a download, which would otherwise be wasted.
    require_writable(out)
    with _place(ray, device) as where:
        prepared = [
            comparison.Prepared(
                plan,
                load_splits(
                    name,
                    split,
                    split_seed,
                    len(plan.seeds),
                    None if quiet else stderr,
                    reading,
                    splits,
                    keep_given_splits=len(names) > 1,
                ),
            )
            for name, plan in zip(names, plans, strict=True)
        ]
        if len(prepared) > 1:
            comparison.check_prepared(prepared)
        sweep = GraphSweep(prepared, where, out, stderr, quiet, as_json)
        if only is not None:
            show_shard(sweep.run_shards(only), as_json)
            return
        comparisons = sweep.run()
    if len(comparisons) > 1:
        together = comparison.Comparisons(tuple(comparisons))
        together = together.written_to(out, resume_command())
        show_together(together, as_json)
    elif as_json:
        echo(comparisons[0].to_json())
    if any(r.summary.failed for found in comparisons for r in found.result.results):
        raise typer.Exit(1)


@contextmanager
def _place(ray: str | None, device: str) -> "Iterator[Place]":
    """A device of this machine, or the workers of a Ray cluster."""
    if ray is None:
        yield parse_device(device)
        return
    from tempergat.comparison import RayWorkers

    with RayWorkers(ray, device) as workers:
        yield workers
