"""Further searches of every method: does a difference survive another search?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tempergat.base import UserError, read_yaml, validated
from tempergat.stats import PairedComparison, compare_pairs
from tempergat.study.engine import Run, read_runs
from tempergat.study.paper import BACKBONE_OF
from tempergat.study.search import SearchPlan, search_for_any_graph
from tempergat.study.tuning.searching import read_trials
from tempergat.study.tuning.trials import trial_means
from tempergat.study.tuning.variants import FOLDER, TunedGraph, seed_range

REPEATS_PLAN_FILE = f"{FOLDER}/repeats.yaml"
REPEATS_FILE = f"{FOLDER}/repeats.csv"
REPEATS_TRIALS_FILE = f"{FOLDER}/repeats_trials.csv"


class Repeat(BaseModel):
    """One further search of every method.

    Attributes:
        sampler_seed: Seed of the sampler that proposes settings.
        first_seed: The first seed of every trial.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    sampler_seed: int = Field(ge=0)
    first_seed: int = Field(ge=0)


class RepeatsPlan(BaseModel):
    """The plan of the further searches.

    Attributes:
        graphs: The recipe of each dataset, for settings that are not searched.
        methods: The methods.
        trials: Settings tried in each search.
        seeds: The number of seeds of every trial.
        repeats: The searches of each method and graph.
        reported_seeds: `first to last`, in words.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    graphs: dict[str, str]
    methods: list[str]
    trials: int = Field(ge=1)
    seeds: int = Field(ge=1)
    repeats: list[Repeat] = Field(min_length=1)
    reported_seeds: str

    @property
    def run_seeds(self) -> range:
        """The reported seeds."""
        return seed_range(self.reported_seeds)

    def search(self, graph: str, repeat: Repeat) -> SearchPlan:
        """The search of a repeat: that of `compare` with `tune`, with other seeds."""
        changes = {
            "dataset": graph,
            "base": self.graphs[graph],
            "trials": self.trials,
            "seeds": self.seeds,
            "sampler_seed": repeat.sampler_seed,
            "first_seed": repeat.first_seed,
        }
        return search_for_any_graph().model_copy(update=changes)


@dataclass(frozen=True)
class SearchId:
    """One search: a method in a repeat, the first of which has number 1."""

    repeat: int
    method: str


@dataclass(frozen=True)
class RepeatedGraph:
    """All searches of every method on one graph.

    Attributes:
        means: By method, the mean test score in percent in each search: the first
            search, then the repeats that are whole.
        differences: By variant, its mean difference from its backbone in each search.
        repeats: The numbers of the repeats that are whole.
        planned: How many repeats there will be.
        devices: Where they were made.
    """

    means: Mapping[str, Sequence[float]]
    differences: Mapping[str, Sequence[float]]
    repeats: Sequence[int]
    planned: int
    devices: Sequence[str]

    @property
    def searches(self) -> int:
        """How many searches each method has."""
        return 1 + len(self.repeats)

    @cached_property
    def over_searches(self) -> dict[str, PairedComparison]:
        """By variant, the comparison with its backbone over the searches."""
        scores = {name: dict(enumerate(means)) for name, means in self.means.items()}
        against = {name: BACKBONE_OF[name] for name in self.differences}
        return {one.method: one for one in compare_pairs(scores, against)}

    def same_sign(self, variant: str) -> int:
        """In how many searches the difference has the sign of the mean."""
        found = np.asarray(self.differences[variant])
        return int(np.sum(np.sign(found) == np.sign(found.mean())))

    def excludes_zero(self, variant: str) -> bool:
        """Whether the interval over the searches excludes 0."""
        over = self.over_searches[variant]
        if over.low is None or over.high is None:
            return False
        return over.low > 0.0 or over.high < 0.0

    def survives(self, variant: str) -> bool:
        """Whether the difference of the first search survives, as the plan says."""
        found = self.differences[variant]
        return self.excludes_zero(variant) and float(np.mean(found)) * found[0] > 0.0


def load_repeats(results: Path) -> RepeatsPlan | None:
    """The plan; None where results/ has none.

    Raises:
        UserError: It cannot be read or used.
    """
    file = results / REPEATS_PLAN_FILE
    if not file.is_file():
        return None
    return validated(RepeatsPlan, read_yaml(file, str(file)), str(file))


def read_repeats(
    results: Path, first: Mapping[str, TunedGraph]
) -> dict[str, RepeatedGraph]:
    """The graphs that have a whole repeat, with the first search.

    Args:
        results: The project's folder of results.
        first: The first search, by graph.

    Raises:
        UserError: A file cannot be read, or a method was not run with the best of its
            settings.
    """
    plan = load_repeats(results)
    if plan is None or not (results / REPEATS_FILE).exists():
        return {}
    runs = read_runs(results / REPEATS_FILE)
    lines = read_trials(results / REPEATS_TRIALS_FILE)
    found = {}
    for graph in plan.graphs:
        whole = whole_searches(plan, graph, runs, lines)
        repeats = [
            number
            for number in range(1, len(plan.repeats) + 1)
            if all(SearchId(number, method) in whole for method in plan.methods)
        ]
        if repeats and graph in first:
            found[graph] = _repeated(plan, first[graph], repeats, whole)
    return found


def whole_searches(
    plan: RepeatsPlan,
    graph: str,
    runs: Sequence[Run],
    lines: Sequence[Mapping[str, str]],
) -> dict[SearchId, list[Run]]:
    """The reported runs, by seed, of every search on a graph that has all its runs.

    Args:
        plan: The plan.
        graph: The graph.
        runs: The runs of the repeats.
        lines: The table of their trials.

    Raises:
        UserError: A chosen setting is not the best of its search.
    """
    of_graph = [run for run in runs if run.dataset == graph]
    reported: dict[str, list[Run]] = {}
    for run in sorted(of_graph, key=lambda one: one.seed):
        if run.seed in plan.run_seeds:
            reported.setdefault(run.config_hash, []).append(run)
    trials = Counter(
        SearchId(int(line["repeat"]), line["method"])
        for line in lines
        if line["dataset"] == graph
    )
    whole = {}
    for line in lines:
        key = SearchId(int(line["repeat"]), line["method"])
        if line["dataset"] != graph or line["chosen"] != "True":
            continue
        found = reported.get(line["config_hash"], [])
        if trials[key] == plan.trials and len(found) == len(plan.run_seeds):
            _require_best(plan, graph, key, line["config_hash"], of_graph)
            whole[key] = found
    return whole


def _require_best(
    plan: RepeatsPlan, graph: str, key: SearchId, chosen: str, runs: Sequence[Run]
) -> None:
    """Refuse a chosen setting that another trial beats on validation nodes."""
    seeds = plan.search(graph, plan.repeats[key.repeat - 1]).run_seeds
    trials = trial_means(runs, key.method, seeds)
    means = {trial.config_hash: trial.val for trial in trials}
    if means.get(chosen, 0.0) < max(means.values(), default=0.0) - 1e-9:
        raise UserError(
            f"{key.method} on {graph}, repeat {key.repeat}: another setting than the "
            f"chosen one is the best in {REPEATS_FILE}; restore it and "
            f"{REPEATS_TRIALS_FILE} from a copy"
        )


def _repeated(
    plan: RepeatsPlan,
    first: TunedGraph,
    repeats: Sequence[int],
    whole: Mapping[SearchId, Sequence[Run]],
) -> RepeatedGraph:
    means, differences = {}, {}
    for method in plan.methods:
        tests = {n: _tests(whole[SearchId(n, method)]) for n in repeats}
        means[method] = [
            first.result[method].summary.mean or 0.0,
            *(float(np.nanmean(tests[number])) for number in repeats),
        ]
        if method in BACKBONE_OF:
            backbone = BACKBONE_OF[method]
            differences[method] = [
                _first_difference(first, method),
                *(
                    float(np.nanmean(tests[n] - _tests(whole[SearchId(n, backbone)])))
                    for n in repeats
                ),
            ]
    devices = {run.device for runs in whole.values() for run in runs}
    return RepeatedGraph(
        means, differences, repeats, len(plan.repeats), sorted(devices)
    )


def _first_difference(first: TunedGraph, method: str) -> float:
    found = next(one for one in first.comparisons if one.method == method)
    return 0.0 if found.difference is None else found.difference


def _tests(runs: Sequence[Run]) -> np.ndarray:
    """Test scores in percent; a failed run has none."""
    return np.array(
        [
            100.0 * run.scores["best_val_accuracy"].test
            if run.status == "done"
            else np.nan
            for run in runs
        ]
    )
