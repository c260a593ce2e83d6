"""`tempergat compare`: which method wins on a graph, and is it real?"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from tempergat.base import UserError
from tempergat.cli.options.groups import ReadingOptions, Settings, with_options
from tempergat.cli.options.shared import (
    Json,
    Quiet,
    Verbose,
    complete_dataset,
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
_Table = Annotated[
    Path | None,
    typer.Option(
        help="Print the tables of a store or of an output folder, and train "
        "nothing; DATASET then names graphs of it.",
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


@with_options(
    datasets=(
        *("runs", "methods", "baseline", "recipe"),
        *("split", "split_seed", "splits"),
    ),
    table=("ray", "tune", "noise"),
    learned=(Settings, ReadingOptions, "device", "out"),
)
def compare(
    context: typer.Context,
    datasets: _Datasets = None,
    table: _Table = None,
    learned: _Learned = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    *,
    settings: Settings,
    reading: ReadingOptions,
    **given: Any,
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
    shown = {"as_json": as_json, "verbose": verbose, "learned": learned}
    if table is not None:
        _refuse_beside_table(context)
        _print_stored(table, datasets or [], given["baseline"], given["tune"], **shown)
        return
    names = datasets or [DEMONSTRATION]
    several = len(names) > 1
    for name in names:
        refuse_unknown_name(name)
    if given["methods"] is not None:
        given["methods"] = parse_methods(given["methods"])
    with spinner("starting", quiet=quiet):
        from tempergat import comparison
        from tempergat.cli.ui.display import TerminalDisplay, print_result
        from tempergat.cli.ui.tables import SafeConsole

        overrides = settings.overrides()
        given["runs"] = parse_runs(given["runs"])
        given["split"] = parse_split(given["split"])
        given |= {"read_options": reading.options(), "scale": reading["scale"]}
        options = [comparison.CompareOptions(name, **given) for name in names]
        plans = [comparison.make_plan(one, overrides) for one in options]
        stderr = SafeConsole(stderr=True)
    # Before a download, which would otherwise be wasted.
    require_writable(given["out"])
    device, ray = given["device"], given["ray"]
    on_ray = None if ray is None else comparison.RayWorkers(ray, device)
    with on_ray or nullcontext(parse_device(device)) as place:
        display = TerminalDisplay(
            plans, stderr, _train_options(context), quiet=quiet, **shown
        )
        with download_display(None if quiet else stderr) as progress:
            plans = comparison.read_graphs(plans, several=several, progress=progress)
        for plan in plans:
            print_notes(plan.first_graph)
        with stoppable(None):
            result = comparison.run_comparisons(
                plans,
                place,
                given["out"],
                several=several,
                display=display,
                command=resume_command(),
            )
    print_result(result, as_json=as_json, verbose=verbose)
    if result.failed:
        raise typer.Exit(1)


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
