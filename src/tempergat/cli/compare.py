"""`tempergat compare`: which method wins on a graph, and is it real?"""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from tempergat.base import UserError
from tempergat.cli.options.groups import (
    Reading,
    Settings,
    with_reading_options,
    with_settings_options,
)
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
    complete_dataset,
    complete_methods,
    parse_device,
    parse_methods,
    parse_runs,
    parse_split,
    require_writable,
)
from tempergat.cli.ui.graphs import (
    DEMONSTRATION,
    download_display,
    print_notes,
    refuse_unknown_name,
)
from tempergat.cli.ui.output import spinner
from tempergat.cli.ui.signals import resume_command, stoppable

EXAMPLES = (
    "tempergat compare cora",
    "tempergat compare path/to/my/graph --runs 20 --methods gat,temp_gated",
    "tempergat compare cora citeseer --out results-of-two",
)


@with_settings_options
@with_reading_options
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
        from tempergat.cli.ui.display import print_stored

        print_stored(table, datasets or [], baseline, as_json=as_json)
        return
    for name in names:
        refuse_unknown_name(name)
    chosen = None if methods is None else parse_methods(methods)
    several = len(names) > 1
    with spinner("starting", quiet=quiet):
        from tempergat import comparison
        from tempergat.cli.ui.display import TerminalDisplay, print_result
        from tempergat.cli.ui.tables import error_console

        count, overrides = parse_runs(runs), settings.overrides()
        plans = [
            comparison.make_plan(
                name, chosen, count, recipe, baseline, overrides, tune, noise
            )
            for name in names
        ]
        only = None if shard is None else comparison.Shard.parse(shard)
        if only is not None:
            comparison.refuse_shard(only, tune=tune, ray=ray, out=out)
        stderr = error_console()
    # Before a download, which would otherwise be wasted.
    require_writable(out)
    with (
        nullcontext(parse_device(device))
        if ray is None
        else comparison.RayWorkers(ray, device) as place
    ):
        with download_display(None if quiet else stderr) as progress:
            plans = comparison.read_graphs(
                plans,
                several=several,
                split=parse_split(split),
                split_seed=split_seed,
                splits=splits,
                options=reading.options(),
                scale=reading.scale,
                progress=progress,
            )
        for plan in plans:
            print_notes(plan.first_graph)
        with stoppable(None if only is None else "finished runs are kept"):
            result = comparison.run_comparisons(
                plans,
                place,
                out,
                several=several,
                shard=only,
                display=TerminalDisplay(plans, stderr, quiet=quiet, as_json=as_json),
                command=resume_command(),
            )
    print_result(result, as_json=as_json)
    if result.failed:
        raise typer.Exit(1)
