"""Every method with a search of its own: does a variant beat its tuned backbone?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tempergat.base import UserError, read_yaml, validated
from tempergat.stats import PairedComparison
from tempergat.study.engine import Run, read_runs
from tempergat.study.paper import BACKBONE_OF
from tempergat.study.results import DatasetResult, dataset_result
from tempergat.study.tuning.trials import TrialMeans, near_best_tests, trial_means

FOLDER = "tuned_variants"
PLAN_FILE = f"{FOLDER}/plan.yaml"
RUNS_FILE = f"{FOLDER}/runs.csv"
# What `compare --tune` searches.
SETTINGS = (
    "learning_rate",
    "weight_decay",
    "feature_dropout",
    "attention_dropout",
    "residual",
    "norm",
)
# A run that classifies a smaller share of its training nodes at the end collapsed.
_COLLAPSED = 0.5


class VariantsPlan(BaseModel):
    """The plan of the search per method.

    Attributes:
        graphs: The datasets.
        methods: The methods.
        base: The recipe that holds all other settings, in words.
        trials: Settings tried for each method and graph.
        search_seeds: The seeds of the search.
        reported_seeds: `first to last`, in words.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    graphs: list[str]
    methods: list[str]
    base: str
    trials: int = Field(ge=1)
    search_seeds: list[int]
    reported_seeds: str

    @property
    def run_seeds(self) -> range:
        """The reported seeds."""
        return seed_range(self.reported_seeds)


def seed_range(words: str) -> range:
    """The seeds of `first to last`."""
    first, _, last = words.partition(" to ")
    return range(int(first), int(last) + 1)


@dataclass(frozen=True)
class TunedGraph:
    """All methods on one graph, each with the settings of its own search.

    Attributes:
        result: Scores and comparisons; Holm's correction covers the variants.
        settings: The chosen settings by method.
        collapsed: Collapsed runs by method; methods without any are left out.
        near_best: By method, the lowest and highest test mean of the trials that are
            best by validation score.
    """

    result: DatasetResult
    settings: Mapping[str, Mapping[str, Any]]
    collapsed: Mapping[str, int]
    near_best: Mapping[str, tuple[float, float]]

    @property
    def comparisons(self) -> list[PairedComparison]:
        """Every variant against its tuned backbone."""
        return [r.comparison for r in self.result.results if r.comparison is not None]


@dataclass(frozen=True)
class TunedVariants:
    """The study, as far as there are runs.

    Attributes:
        plan: The plan.
        graphs: The graphs on which every method has all its reported runs.
        missing: What is missing of the others, in words, by graph.
        devices: Where the runs were made.
    """

    plan: VariantsPlan
    graphs: Mapping[str, TunedGraph]
    missing: Mapping[str, str]
    devices: Sequence[str]

    def judged(self, verdict: str) -> list[tuple[str, PairedComparison]]:
        """The variants with a verdict, with their graphs."""
        return [
            (name, comparison)
            for name, graph in self.graphs.items()
            for comparison in graph.comparisons
            if comparison.verdict == verdict
        ]

    @property
    def compared(self) -> int:
        """How many comparisons there are."""
        return sum(len(graph.comparisons) for graph in self.graphs.values())


def read_variants(results: Path) -> TunedVariants | None:
    """The study from results/tuned_variants/; None without runs.

    Raises:
        UserError: A file cannot be read, or a method was not run with the best of its
            settings.
    """
    path = results / RUNS_FILE
    if not path.exists():
        return None
    file = results / PLAN_FILE
    plan = validated(VariantsPlan, read_yaml(file, str(file)), str(file))
    runs = read_runs(path)
    graphs, missing = {}, {}
    for name in plan.graphs:
        of_graph = [run for run in runs if run.dataset == name]
        lacking = _lacking(plan, of_graph)
        if lacking:
            missing[name] = lacking
        else:
            graphs[name] = _tuned_graph(plan, name, of_graph)
    devices = sorted({run.device for run in runs})
    return TunedVariants(plan, graphs, missing, devices)


def _lacking(plan: VariantsPlan, runs: Sequence[Run]) -> str:
    counts = Counter(run.method for run in runs if run.seed in plan.run_seeds)
    absent = [
        f"{method} {counts[method]} of {len(plan.run_seeds)}"
        for method in plan.methods
        if counts[method] < len(plan.run_seeds)
    ]
    if len(absent) == len(plan.methods) and not counts:
        return "all runs"
    return ", ".join(absent)


def _tuned_graph(plan: VariantsPlan, name: str, runs: Sequence[Run]) -> TunedGraph:
    reported = [run for run in runs if run.seed in plan.run_seeds]
    settings, near_best = {}, {}
    for method in plan.methods:
        of_method = [run for run in reported if run.method == method]
        trials = trial_means(runs, method, plan.search_seeds)
        _require_best(name, of_method[0], trials)
        near_best[method] = near_best_tests(trials)
        config = of_method[0].config
        settings[method] = {key: config[key] for key in SETTINGS if key in config}
    collapsed = Counter(
        run.method
        for run in reported
        if run.status == "done" and run.scores["last_epoch"].train < _COLLAPSED
    )
    result = dataset_result(reported, plan.methods, BACKBONE_OF)
    return TunedGraph(result, settings, dict(collapsed), near_best)


def _require_best(name: str, reported: Run, trials: Sequence[TrialMeans]) -> None:
    """Refuse reported runs whose settings another trial beats on validation nodes."""
    means = {trial.config_hash: trial.val for trial in trials}
    if not trials or means.get(reported.config_hash, 0.0) < trials[0].val - 1e-9:
        raise UserError(
            f"{reported.method} on {name} was not run with the best of its settings by "
            f"validation score; export its store to {RUNS_FILE} again"
        )
