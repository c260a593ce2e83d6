"""The small half of the paper's first table and the tuned recipes, within a time limit.

    python benchmarks/run_paper_table.py --device cuda --out tempergat-out/paper \
        --parts calibration tuning --limit-s 540

Parts, in the order they run: `calibration` (the baselines in every cell of
searches/calibration.yaml), `paper` (eleven methods with recipes/paper as it stands),
`tuning` (the searches of searches/<dataset>.yaml), `tuned` (eleven methods with the
recipes that tuning found). Every part goes on where it was stopped, by the limit or
otherwise; several processes may work on one --out folder, for instance one for each of
--datasets. After a change of recipes/paper, move stores/paper.sqlite away first: a
store keeps the runs of all settings. Exit status: 0 all done, 3 stopped by the limit.

Written below --out, ready to be copied to results/ and recipes/: stores/<part>.sqlite,
calibration.csv, homogeneous.csv and tuned.csv with their .configs.json,
tuning/<dataset>_trials.csv, recipes/tuned/<dataset>.yaml.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from tempergat.data import Dataset, load
from tempergat.study.engine import OnProgress, Progress, Store, export_runs, sweep
from tempergat.study.paper.numbers import PAPER_METHODS, PLAIN_METHODS, read_paper
from tempergat.study.tuning.calibrate import calibrate
from tempergat.study.tuning.plans import load_calibration, load_search
from tempergat.study.tuning.search import Trial, require_optuna, search, write_tuned
from tempergat.training import Recipe, load_recipe

DATASETS = ("cora", "citeseer", "pubmed")
STOPPED = 3


class OutOfTime(Exception):
    """The limit is reached."""


class Driver:
    """The parts, on one device, into one folder, within one limit."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.device = torch.device(arguments.device)
        self.out: Path = arguments.out
        self.results: Path = arguments.results
        self.runs: int | None = arguments.runs
        self._started = time.monotonic()
        self._limit_s: float = arguments.limit_s
        self._graphs: dict[str, Dataset] = {}

    def graph(self, name: str) -> Dataset:
        if name not in self._graphs:
            self._graphs[name] = load(name)
        return self._graphs[name]

    def say(self, line: str) -> None:
        print(f"[{time.monotonic() - self._started:6.1f} s] {line}", flush=True)

    def check_time(self) -> None:
        if time.monotonic() - self._started > self._limit_s:
            raise OutOfTime

    def watch(self, label: str) -> OnProgress:
        """Says what finished, and stops everything when the time is up."""

        def on_progress(progress: Progress) -> None:
            self.check_time()
            if progress.new and progress.method is not None:
                self.say(
                    f"{label}: {progress.method}, {progress.runs_done} of "
                    f"{progress.runs} runs"
                )

        return on_progress

    def store(self, part: str) -> Store:
        return Store(self.out / "stores" / f"{part}.sqlite")

    def calibration(self, name: str) -> None:
        plan, paper = load_calibration(), read_paper(self.results)
        with self.store("calibration") as store:
            found = calibrate(
                self.graph(name),
                plan,
                paper[name],
                store,
                self.device,
                self.watch(f"calibration {name}"),
            )
            export_runs(store, self.out / "calibration.csv")
        for cell in found.cells:
            means = ", ".join(f"{k} {v.mean:.2f}" for k, v in cell.baselines.items())
            mark = "  <- chosen" if cell is found.chosen else ""
            self.say(
                f"{name} {dict(cell.settings)}: {means}, misfit {cell.misfit:.1f}{mark}"
            )

    def paper(self, name: str) -> None:
        self._eleven(name, load_recipe(f"paper/{name}"), "paper", "homogeneous.csv")

    def tuning(self, name: str) -> None:
        plan = load_search(name)
        trials: list[Trial] = []

        def on_trial(trial: Trial) -> None:
            self.say(
                f"tuning {name} {trial.backbone} {trial.number}: {trial.score} "
                f"{dict(trial.settings)}"
            )

        with self.store("tuning") as store:
            for backbone in PLAIN_METHODS:
                trials += search(
                    self.graph(name),
                    plan,
                    backbone,
                    store,
                    self.device,
                    on_trial,
                    lambda progress: self.check_time(),
                )
        recipe, _ = write_tuned(
            name, plan, trials, self.out / "recipes" / "tuned", self.out / "tuning"
        )
        self.say(f"wrote {recipe}")

    def tuned(self, name: str) -> None:
        recipe = load_recipe(self.out / "recipes" / "tuned" / f"{name}.yaml")
        self._eleven(name, recipe, "tuned", "tuned.csv")

    def _eleven(self, name: str, recipe: Recipe, part: str, table: str) -> None:
        configs = [recipe.config_for(method) for method in PAPER_METHODS]
        seeds = range(self.runs or recipe.runs)
        with self.store(part) as store:
            watch = self.watch(f"{part} {name}")
            sweep(self.graph(name), configs, seeds, store, self.device, watch)
            export_runs(store, self.out / table)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parts = ("calibration", "paper", "tuning", "tuned")
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("tempergat-out/paper"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--runs", type=int, help="the recipe's when left out")
    parser.add_argument("--limit-s", type=float, default=float("inf"))
    arguments = parser.parse_args(words)
    if "tuning" in arguments.parts:
        require_optuna()
    driver = Driver(arguments)
    for part in parts:
        if part not in arguments.parts:
            continue
        work: Callable[[str], None] = getattr(driver, part)
        for name in arguments.datasets:
            driver.say(f"{part} {name}")
            try:
                work(name)
            except OutOfTime:
                driver.say(f"stopped by the limit in {part} {name}; run again")
                return STOPPED
    driver.say("all done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
