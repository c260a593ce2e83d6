"""`tempergat tune`: a search for settings."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.base import file_stem
from tempergat.cli.options.help_text import examples
from tempergat.cli.options.reading import Reading, with_reading_options
from tempergat.cli.options.settings import Metric
from tempergat.cli.options.shared import (
    DatasetName,
    DeviceName,
    Json,
    OutFolder,
    Quiet,
    Split,
    SplitSeed,
    parse_device,
    require_writable,
)
from tempergat.cli.ui.graphs import load_graph, refuse_unknown_name
from tempergat.cli.ui.json_output import print_json
from tempergat.cli.ui.output import echo
from tempergat.cli.ui.spinner import spinner
from tempergat.cli.ui.stopping import stoppable

if TYPE_CHECKING:
    from tempergat.nn import BackboneName
    from tempergat.study.search import Trial

STORE_NAME = "store.sqlite"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog=examples(
            "tempergat tune cora",
            "tempergat tune my/graph --metric macro_f1 --out tuned",
        )
    )(with_reading_options(tune))


def tune(
    dataset: DatasetName,
    search: Annotated[
        Path | None,
        typer.Option(
            help="YAML file of the search; the dataset's own when left out.",
        ),
    ] = None,
    metric: Metric = None,
    split: Split = None,
    split_seed: SplitSeed = None,
    *,
    reading: Reading,
    device: DeviceName = "auto",
    out: OutFolder = Path("tempergat-out/tuned"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search for good settings of gcn, gat and gatv2.

    They are judged by validation score. Writes a recipe for `tempergat compare
    --recipe`, in which all variants use their backbone's settings. A stopped command
    continues when it is run again. Needs the extra: pip install 'tempergat[tune]'.
    """
    refuse_unknown_name(dataset)
    with spinner("starting", quiet=quiet):
        from tempergat.cli.ui.tables import error_console
        from tempergat.study.engine import Store
        from tempergat.study.paper import PLAIN_METHODS
        from tempergat.study.search import load_search, require_optuna
        from tempergat.study.tuning import search as search_backbone
        from tempergat.study.tuning import write_tuned
        from tempergat.training import make_overrides

        plan = load_search(search or dataset)
        if metric is not None:
            make_overrides(metric=metric)
            plan = plan.model_copy(update={"metric": metric})
        require_optuna()
        where = parse_device(device)
        require_writable(out)
    console = error_console()
    shown = None if quiet else console
    graph = load_graph(dataset, split, split_seed, shown, reading)
    trials: list[Trial] = []

    def on_trial(trial: "Trial") -> None:
        if not quiet:
            console.print(_trial_line(trial, plan.trials))

    with stoppable(), Store(out / STORE_NAME) as store:
        for backbone in PLAIN_METHODS:
            trials += search_backbone(
                graph, plan, backbone, store, where, on_trial=on_trial
            )
        identity = graph.graph_fingerprint or graph.fingerprint
        file_name = store.table_name(graph.name, identity, [graph.fingerprint])
    recipe, table = write_tuned(graph.name, plan, trials, out, out, file_name)
    if file_name != file_stem(graph.name):
        echo(
            f"{out} has a recipe for another graph called {graph.name}, so this one is "
            f"in {recipe.name}",
            err=True,
        )
    best = _best(trials)
    if as_json:
        print_json(
            {
                "dataset": graph.name,
                "best": {name: _facts(trial) for name, trial in best.items()},
                "recipe": str(recipe),
                "trials": str(table),
            }
        )
        return
    for trial in best.values():
        echo(_trial_line(trial, plan.trials))
    echo(f"recipe   {recipe}")
    echo(f"trials   {table}")


def _best(trials: list["Trial"]) -> dict["BackboneName", "Trial"]:
    from tempergat.study.paper import PLAIN_METHODS
    from tempergat.study.search import best_trial

    return {
        backbone: best_trial([t for t in trials if t.method == backbone])
        for backbone in PLAIN_METHODS
    }


def _facts(trial: "Trial") -> dict[str, Any]:
    facts = asdict(trial)
    return {"backbone": facts.pop("method"), **facts}


def _trial_line(trial: "Trial", trials: int) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in trial.settings.items())
    score = "a run failed" if trial.score is None else f"{trial.score:.2f}"
    return f"{trial.method} {trial.number + 1}/{trials}: {score} ({settings})"
