"""`tempergat compare`: which method wins on a graph, and is it real?"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.base import UserError, counted
from tempergat.cli.graphs import DEMONSTRATION, load_splits
from tempergat.cli.ui.options import (
    DEFAULT_RUNS,
    DeviceName,
    Json,
    OutFolder,
    Quiet,
    RecipeName,
    Split,
    SplitSeed,
    checked_method,
    describe,
    parse_device,
    parse_methods,
    parse_runs,
    require_writable,
    resume_command,
)
from tempergat.cli.ui.spinner import waiting
from tempergat.cli.ui.stopping import exit_status

if TYPE_CHECKING:
    from tempergat.study.engine import Run
    from tempergat.study.results import DatasetResult
    from tempergat.training.config import RunConfig

STORE_NAME = "store.sqlite"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(compare)


def compare(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET|PATH",
            help="A name (`tempergat data list`) or the path of a graph of your own; a "
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
    device: DeviceName = "auto",
    out: OutFolder = Path("tempergat-out"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which method wins on a graph, and is it real?

    Trains every method over many seeds and says which differences stand out of the
    noise. Where a graph has several splits, the seeds take turns over them. Runs are
    kept in the --out folder as they finish: the same command goes on where it was
    stopped, and does nothing twice. Exit status: 0 done, 1 some runs failed, 2 bad
    usage or input.
    """
    with waiting("starting", quiet=quiet):
        plan = _plan(dataset, runs, methods, baseline, recipe)
        comparison = _Comparison(plan, device, out, as_json, quiet)
    comparison.run(dataset, split, split_seed)


@dataclass(frozen=True)
class _Plan:
    """What is compared with what, and with which settings."""

    methods: tuple[str, ...]
    configs: tuple["RunConfig", ...]
    seeds: tuple[int, ...]
    baseline: str | None
    recipe: str

    @property
    def selection(self) -> str:
        return self.configs[0].selection

    @property
    def against(self) -> dict[str, str]:
        """Each compared method's baseline."""
        from tempergat.nn.methods import METHODS

        pairs = {name: self.baseline or METHODS[name].backbone for name in self.methods}
        return {name: other for name, other in pairs.items() if name != other}

    @property
    def without_baseline(self) -> list[str]:
        """Methods whose baseline is not among those compared."""
        return [n for n, other in self.against.items() if other not in self.methods]


def _plan(
    dataset: str,
    runs: str,
    methods: str | None,
    baseline: str | None,
    recipe: str | None,
) -> _Plan:
    from tempergat.nn.methods import METHODS
    from tempergat.training import recipe_for

    names = [name for name, method in METHODS.items() if method.in_paper]
    if methods is not None:
        names = parse_methods(methods)
    if baseline is not None and checked_method(baseline) not in names:
        names = [baseline, *names]
    recipe, settings = recipe_for(dataset, recipe)
    configs = [settings.config_for(name) for name in names]
    rules = sorted({config.selection for config in configs})
    if len(rules) > 1:
        raise UserError(
            f"recipe {recipe} selects epochs by {' and by '.join(rules)}; scores are "
            "comparable under one rule only, so use one selection throughout"
        )
    seeds = range(parse_runs(runs, settings.runs))
    return _Plan(tuple(names), tuple(configs), tuple(seeds), baseline, recipe)


def _turns(runs: int, splits: int) -> str:
    """How the runs take turns over the splits."""
    alone = "--split 0 takes the first alone"
    if runs <= splits:
        return f"{runs} splits: run r is on split r; {alone}"
    uneven = ""
    if runs % splits:
        uneven = f"; --runs {runs - runs % splits} would give each as many"
    return f"{splits} splits: run r is on split r mod {splits}; {alone}{uneven}"


class _Comparison:
    """One plan carried out: trained, shown, written."""

    def __init__(
        self, plan: _Plan, device: str, out: Path, as_json: bool, quiet: bool
    ) -> None:
        from tempergat.cli.ui.tables import error_console, output_console

        self._plan = plan
        self._device = parse_device(device)
        self._out = out
        self._as_json = as_json
        self._quiet = quiet
        self._stdout = output_console()
        self._stderr = error_console()
        self._metric = ""
        self._finished: list[Run] = []

    def run(self, name: str, split: str | None, split_seed: int | None) -> None:
        from tempergat.cli.ui.progress import make_display
        from tempergat.study.engine import Progress, Store, sweep
        from tempergat.training.run import OutOfMemory

        plan = self._plan
        # Before a download, so that it is not in vain.
        require_writable(self._out)
        console = None if self._quiet else self._stderr
        graphs = load_splits(name, split, split_seed, len(plan.seeds), console)
        first = next(iter(graphs.values()))
        self._metric = first.metric
        self._say(describe(first))
        if len(graphs) > 1:
            self._say(_turns(len(plan.seeds), len(graphs)))
        self._say(
            f"{counted(len(plan.methods), 'method')} x "
            f"{counted(len(plan.seeds), 'run')} on {self._device}, recipe {plan.recipe}"
        )
        if plan.without_baseline:
            self._say(
                f"nothing to compare {', '.join(plan.without_baseline)} with: add "
                "the backbone to --methods, or choose a --baseline"
            )
        with Store(self._out / STORE_NAME) as store:
            display = make_display(
                self._stderr,
                plan.methods,
                len(plan.seeds),
                plan.selection,
                quiet=self._quiet,
            )

            def on_progress(progress: Progress) -> None:
                self._finished += progress.new
                display(progress)

            try:
                with display:
                    sweep(
                        graphs,
                        plan.configs,
                        plan.seeds,
                        store,
                        self._device,
                        on_progress,
                    )
            except KeyboardInterrupt as stop:
                self._show_so_far()
                raise typer.Exit(exit_status(stop)) from stop
            except OutOfMemory:
                # Said after what the other methods came to.
                if self._finished:
                    self._show()
                raise
        if self._show():
            raise typer.Exit(1)

    def _result(self) -> "DatasetResult":
        from tempergat.study.results import dataset_result

        plan = self._plan
        return dataset_result(
            self._finished, plan.methods, plan.against, self._metric, plan.selection
        )

    def _show(self) -> bool:
        """Write and print the result; return whether a run failed."""
        from tempergat.study.report import write_result

        result = self._result()
        files = write_result(result, self._out, self._plan.baseline)
        self._print(result, files)
        return any(r.summary.failed for r in result.results)

    def _show_so_far(self) -> None:
        done, plan = len(self._finished), self._plan
        if done:
            self._print(self._result(), [])
            self._stderr.print(
                f"Stopped with {done} of {len(plan.methods) * len(plan.seeds)} runs "
                "done; they are kept. Differences and verdicts may change with the "
                "rest. To continue:"
            )
        else:
            self._stderr.print("Stopped before the first runs were done. To continue:")
        self._stderr.print(f"  {resume_command()}", soft_wrap=True)

    def _print(self, result: "DatasetResult", files: Sequence[Path]) -> None:
        from tempergat.cli.ui.tables import print_table
        from tempergat.study.report import as_json, result_table

        if self._as_json:
            done = sum(r.summary.runs + r.summary.failed for r in result.results)
            facts: dict[str, Any] = {
                **as_json(result),
                "fingerprints": {
                    str(run.split): run.fingerprint
                    for run in sorted(self._finished, key=lambda run: run.split)
                },
                "recipe": self._plan.recipe,
                "device": str(self._device),
                "complete": done == len(self._plan.methods) * len(self._plan.seeds),
                "store": str(self._out / STORE_NAME),
                "files": [str(path) for path in files],
            }
            typer.echo(json.dumps(facts, indent=1, allow_nan=False))
            return
        print_table(self._stdout, result_table(result))
        if files:
            *tables, _, picture = files
            typer.echo(f"picture  {picture}")
            typer.echo(f"tables   {', '.join(str(path) for path in tables)}")
            typer.echo(f"runs     {self._out / STORE_NAME}")

    def _say(self, line: str) -> None:
        if not self._quiet:
            self._stderr.print(line)
