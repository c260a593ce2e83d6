"""`tempergat compare`: which method wins on a graph, and is it real?"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.base import UserError
from tempergat.cli.options.groups import ReadingOptions, Settings, with_option_groups
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
    Verbose,
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
from tempergat.cli.ui.output import echo, print_json, spinner
from tempergat.cli.ui.signals import resume_command, stoppable

if TYPE_CHECKING:
    from rich.console import Console

    from tempergat.comparison import Plan

EXAMPLES = {
    "compare": (
        "tempergat compare cora",
        "tempergat compare path/to/my/graph --runs 20 --methods gat,temp_gated",
        "tempergat compare cora citeseer --out results-of-two",
    ),
}


_Datasets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATASET|PATH",
        help="A name (`tempergat data list`) or the path of your own graph, or "
        "several; a generated graph with both kinds of noise when left out.",
        show_default=False,
        autocompletion=complete_dataset,
    ),
]
_Runs = Annotated[
    str,
    typer.Option(
        help="Seeds per method; paper for as many as the recipe, and for the "
        "paper's methods alone."
    ),
]
_Methods = Annotated[
    str | None,
    typer.Option(
        help="Methods like gat,temp_gated; the paper's eleven and mlp when left out.",
        autocompletion=complete_methods,
    ),
]
_Splits = Annotated[
    int | None,
    typer.Option(
        help="Number of splits to make for a graph that comes with none; the runs "
        "take turns over them. Of several graphs, those with splits keep them.",
        show_default=False,
    ),
]
_Table = Annotated[
    Path | None,
    typer.Option(
        help="Print the tables of a store or of an output folder, and train "
        "nothing; DATASET then names graphs of it.",
        show_default=False,
    ),
]
_Ray = Annotated[
    str | None,
    typer.Option(
        help="Train on a Ray cluster: auto for the one on this machine, or the "
        "address of its head.",
        metavar="auto|HOST:PORT",
        show_default=False,
    ),
]
_Tune = Annotated[
    int | None,
    typer.Option(
        help="Settings to try for each method beforehand, by validation score; the "
        "runs compared have other seeds.",
        metavar="N",
        show_default=False,
    ),
]
_Noise = Annotated[
    list[str] | None,
    typer.Option(
        help="Noise on the features of every run: gaussian:0.5 adds Gaussian noise "
        "of half their root mean square, missing:0.3 sets 30 % of the values to 0, "
        "missing:0.3,tau=1 to noise of one root mean square. Once more for both kinds, "
        "Gaussian noise first.",
        metavar="KIND:LEVEL",
        show_default=False,
    ),
]
_Learned = Annotated[
    bool,
    typer.Option(
        "--learned",
        help="Print learned temperatures and mean gates by layer too; the JSON always "
        "has them.",
    ),
]


# What has a meaning beside --table.
_BESIDE_TABLE = (
    *("datasets", "table", "baseline", "tune", "learned"),
    *("as_json", "quiet", "verbose"),
)
# What `train` has no need of or is given for its method, and what it cannot do.
_OF_COMPARE = (*_BESIDE_TABLE, "runs", "methods", "recipe", "ray", "out")
_GIVEN = (*_OF_COMPARE, *Settings.OPTIONS)
_NOT_IN_TRAIN = ("noise", "splits")


@with_option_groups
def compare(
    context: typer.Context,
    datasets: _Datasets = None,
    runs: _Runs = str(DEFAULT_RUNS),
    methods: _Methods = None,
    baseline: Baseline = None,
    recipe: RecipeName = None,
    split: Split = None,
    split_seed: SplitSeed = None,
    splits: _Splits = None,
    table: _Table = None,
    ray: _Ray = None,
    tune: _Tune = None,
    noise: _Noise = None,
    learned: _Learned = False,
    *,
    settings: Settings,
    reading: ReadingOptions,
    device: DeviceName = "auto",
    out: OutFolder = Path("tempergat-out"),
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
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
    if table is not None:
        _refuse_beside_table(context)
        shown = {"as_json": as_json, "verbose": verbose, "learned": learned}
        _print_stored(table, datasets or [], baseline, tune, **shown)
        return
    names = datasets or [DEMONSTRATION]
    several = len(names) > 1
    for name in names:
        refuse_unknown_name(name)
    chosen = None if methods is None else parse_methods(methods)
    with spinner("starting", quiet=quiet):
        from tempergat import comparison
        from tempergat.cli.ui.display import TerminalDisplay, print_result
        from tempergat.cli.ui.tables import SafeConsole

        options = (recipe, baseline, settings.overrides(), tune, noise)
        count = parse_runs(runs)
        plans = [comparison.make_plan(n, chosen, count, *options) for n in names]
        stderr = SafeConsole(stderr=True)
    # Before a download, which would otherwise be wasted.
    require_writable(out)
    on_ray = None if ray is None else comparison.RayWorkers(ray, device)
    with on_ray or nullcontext(parse_device(device)) as place:
        display = TerminalDisplay(
            plans,
            stderr,
            _train_options(context),
            quiet=quiet,
            as_json=as_json,
            verbose=verbose,
            learned=learned,
        )
        plans = _read_graphs(
            plans,
            reading,
            None if quiet else stderr,
            several=several,
            split=parse_split(split),
            split_seed=split_seed,
            splits=splits,
        )
        with stoppable(None):
            result = comparison.run_comparisons(
                plans,
                place,
                out,
                several=several,
                display=display,
                command=resume_command(),
            )
    print_result(result, as_json=as_json, verbose=verbose)
    if result.failed:
        raise typer.Exit(1)


def _read_graphs(
    plans: "list[Plan]",
    reading: ReadingOptions,
    console: "Console | None",
    **options: Any,
) -> "list[Plan]":
    """Read the graphs of plans, and print the notes on how they were read."""
    from tempergat.comparison import read_graphs

    options |= {"options": reading.options(), "scale": reading["scale"]}
    with download_display(console) as progress:
        plans = read_graphs(plans, progress=progress, **options)
    for plan in plans:
        print_notes(plan.first_graph)
    return plans


def _typed(context: typer.Context) -> Iterator[tuple[str, str]]:
    """The names of the options that were typed, and the flag of each."""
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        if source is not None and source.name == "COMMANDLINE":
            is_off = context.params[str(option.name)] is False
            flags = option.secondary_opts if is_off else option.opts
            yield str(option.name), flags[0]


def _train_options(context: typer.Context) -> list[str] | None:
    """What was typed and `train` needs too, but settings; None where it cannot be."""
    words = []
    for name, flag in _typed(context):
        if name in _NOT_IN_TRAIN:
            return None
        if name not in _GIVEN:
            value = context.params[name]
            words += [flag] if isinstance(value, bool) else [flag, str(value)]
    return words


def _refuse_beside_table(context: typer.Context) -> None:
    for name, flag in _typed(context):
        if name not in _BESIDE_TABLE:
            raise UserError(
                "--table prints what a store holds and trains nothing; leave out "
                f"{flag}"
            )


def _print_stored(
    store: Path,
    datasets: Sequence[str],
    baseline: str | None,
    tune: int | None,
    *,
    as_json: bool,
    verbose: bool,
    learned: bool,
) -> None:
    """Print the comparisons of a store; the list of them as JSON.

    With several names, their summary follows, if there is one table of each.
    """
    if tune is not None:
        raise UserError(
            "--table prints what a store holds and searches nothing; leave out --tune, "
            "tuned runs are shown too"
        )
    from tempergat.cli.ui.display import print_comparison, print_result
    from tempergat.comparison import Comparisons, stored_comparisons

    names: Sequence[str | None] = datasets or [None]
    comparisons = [
        comparison
        for name in names
        for comparison in stored_comparisons(store, name, baseline)
    ]
    if as_json:
        print_json([comparison.facts for comparison in comparisons])
        return
    for number, comparison in enumerate(comparisons):
        if number:
            echo("")
        print_comparison(comparison, verbose=verbose, learned=learned)
    if len(comparisons) == len(datasets) > 1:
        print_result(Comparisons(tuple(comparisons)), as_json=False, verbose=verbose)
