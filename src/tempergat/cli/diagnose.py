"""`tempergat diagnose`: measure a graph and screen methods on validation nodes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempergat.cli.options.groups import ReadingOptions, with_option_groups
from tempergat.cli.options.shared import (
    DatasetName,
    DeviceName,
    Json,
    OutFolder,
    Quiet,
    RecipeName,
    Split,
    SplitSeed,
    complete_methods,
    parse_device,
    parse_methods,
    require_writable,
)
from tempergat.cli.ui.graphs import load_graph, refuse_unknown_name
from tempergat.cli.ui.output import print_json
from tempergat.cli.ui.signals import stoppable

if TYPE_CHECKING:
    from rich.console import Console

    from tempergat.comparison import Diagnosis

STORE_NAME = "diagnose.sqlite"


EXAMPLES = {
    "diagnose": (
        "tempergat diagnose cora",
        "tempergat diagnose my/graph --runs 5 --methods gat,temp_gated",
    ),
}


@with_option_groups
def diagnose(
    data: DatasetName,
    runs: Annotated[
        int | None, typer.Option(min=2, help="Seeds per method; 10 when left out.")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum epochs of a run; 100 if left out."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods to screen; the paper's eleven and mlp when left out.",
            autocompletion=complete_methods,
        ),
    ] = None,
    recipe: RecipeName = None,
    split: Split = None,
    split_seed: SplitSeed = None,
    *,
    reading: ReadingOptions,
    device: DeviceName = "auto",
    out: OutFolder = Path("tempergat-out"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure a graph, screen methods on it and say what that shows.

    Methods are judged on validation nodes; test nodes play no part. Nothing is
    recommended: see docs/diagnose.md for why. To choose a method, use compare.
    """
    refuse_unknown_name(data)
    chosen = None if methods is None else parse_methods(methods)
    from tempergat import comparison
    from tempergat.base import duration
    from tempergat.cli.ui.tables import SafeConsole
    from tempergat.comparison import Progress, Store, note_on_residual
    from tempergat.training import recipe_for

    names = comparison.SCREENED if chosen is None else chosen
    recipe_name, settings = recipe_for(data, recipe)
    settings.require_usual(recipe_name, "diagnose")
    where = parse_device(device)
    require_writable(out)
    console = SafeConsole(stderr=True)
    with Store(out / STORE_NAME) as store:
        shown = None if quiet else console
        graph = load_graph(data, split, split_seed, shown, reading)

        def say(progress: Progress) -> None:
            # Not the display of `compare`, which shows test scores.
            if progress.new and not quiet:
                left = duration(progress.time_left_s or 0.0)
                console.print(
                    f"{progress.runs_done} of {progress.runs} runs, about {left} left"
                )

        with stoppable():
            diagnosis = comparison.diagnose_graph(
                graph,
                settings,
                store,
                where,
                methods=names,
                runs=comparison.SCREENING_RUNS if runs is None else runs,
                epochs=comparison.SCREENING_EPOCHS if epochs is None else epochs,
                on_progress=say,
            )
    if as_json:
        print_json(comparison.diagnosis_json(diagnosis))
        return
    configs = {name: settings.config_for(name).model_dump() for name in names}
    used = (f"The recipe is {recipe_name}.", *note_on_residual(configs))
    _print_diagnosis(SafeConsole(), diagnosis, used)


def _print_diagnosis(
    console: "Console", diagnosis: "Diagnosis", used: tuple[str, ...]
) -> None:
    from tempergat.cli.ui.tables import print_table
    from tempergat.comparison import Table, mean_and_std, p_value, signed

    for line in _measured(diagnosis):
        console.print(line)
    screening = diagnosis.screening
    rows = []
    for entry in screening.screened:
        pair = entry.against_best
        score = mean_and_std(entry.summary.mean, entry.summary.std)
        leads = f"{100 * entry.highest_share:.0f} %"
        numbers = ("-", "-")
        if pair is not None:
            numbers = (signed(pair.difference), p_value(pair.t_p_holm))
        found = screening.best_set
        standing = "-" if found is None else found.standing(entry.method)
        rows.append((entry.method, score, *numbers, leads, standing))
    columns = ("method", "validation", "difference", "p", "leads", "could be best")
    notes = [
        f"{diagnosis.runs} runs of {diagnosis.epochs} epochs, scored on validation "
        "nodes. Difference to the highest mean; p: paired t-test, Holm-corrected over "
        "all pairs of methods; leads: how often its mean is the highest in resamplings "
        "of the seeds; could be best: no other method is shown to be better (95 %).",
        "An accuracy on this number of validation nodes has a standard error of "
        f"{screening.standard_error:.1f} points: smaller differences may be due to the "
        "choice of these nodes.",
        *used,
    ]
    if screening.failed:
        notes.append(f"No run finished of {', '.join(screening.failed)}.")
    title = f"{diagnosis.dataset}: screening"
    print_table(console, Table(title, columns, tuple(rows), tuple(notes)))
    console.print(screening.sentence)


def _measured(diagnosis: "Diagnosis") -> list[str]:
    m = diagnosis.measurements

    def number(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.3g}"

    return [
        f"feature signal-to-noise {number(m.own.signal_to_noise)}, of neighbourhood "
        f"means {number(m.neighbours.signal_to_noise)} (variance between classes over "
        f"within, {m.train_nodes:,} training nodes)",
        f"coordinates that differ between classes: {_share(m.own.reliable_share)}; the "
        f"best tenth of all carries {_share(m.own.top_tenth_share)} of the signal",
        f"non-zero feature entries: {_share(m.density)}; edges inside a class: "
        f"{_share(m.edge_homophily)} of {m.labelled_edges:,} labelled ones, beyond "
        f"chance {number(m.adjusted_homophily)}; mean degree {m.mean_degree:.1f}",
    ]


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.1f} %"
