"""What the result of one dataset holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tempergat.stats import BestSet, Claim, PairedComparison, Summary
from tempergat.training import LayerRecord, Metric

# The name of the row of a constant answer, which every table shows beside the methods.
LARGEST_CLASS = "largest class"


@dataclass(frozen=True)
class MethodResult:
    """One method's runs on one dataset.

    Attributes:
        summary: Mean, deviation and interval of the scores that are compared: those on
            the pairs that all tested methods finished, or all finished runs of a method
            that could not be tested.
        scores: The finished runs' scores by seed.
        comparison: The method against its baseline; None where it has none.
        selected: Learned values at the selected epoch, averaged over finished runs.
        last: Learned values at the last epoch, averaged over finished runs.
        failures: A line for each failed run.
        time_s: Total time of all runs.
        confusion: Test nodes of all finished runs by true class (rows) and predicted
            class; None where a run has none.
        only_class: By seed, the class that a run predicts for every test node; without
            the runs that predict several classes.
        parameter_count: Number of trained parameters, a mean where settings were
            searched; None where a run does not say.
    """

    method: str
    summary: Summary
    scores: dict[int, float]
    comparison: PairedComparison | None
    selected: LayerRecord
    last: LayerRecord
    failures: tuple[str, ...]
    time_s: float
    confusion: Sequence[tuple[int, ...]] | None = None
    only_class: dict[int, int] = field(default_factory=dict)
    parameter_count: float | None = None


@dataclass(frozen=True)
class LargestClass:
    """One class as the answer for every test node; no method, and never ranked.

    It is the class of most test nodes, those of all splits together: no other class,
    given as the answer on all splits, is right more often.

    Attributes:
        label: The class.
        scores: Its scores by seed; by split where there are several.
        mean: Their mean, where every seed counts once, as in the mean of a method.
    """

    label: int
    scores: dict[int, float]
    mean: float


@dataclass(frozen=True)
class DatasetResult:
    """All methods on one dataset.

    Scores are as people see them.

    Attributes:
        metric: The metric of the scores.
        selection: The rule that chose each run's epoch.
        pairing: What the comparisons' pairs share.
        splits: How many splits the runs are on.
        results: One for each method that has runs, in the order given.
        largest_class: What answering the largest class for every node scores; None
            where no run has a confusion matrix.
        pairs: Tests of all pairs of methods, the higher mean of a pair as baseline,
            those with too few runs last; none where these were not made.
        best_set: The methods that could be the best; None where that was not tested.
        fewer: A number of pairs that would make this set smaller, and about how many
            methods it would have; None where no sensible number would.
        compared_on: The seeds, or splits, that means and tests are over: those that all
            tested methods finished.
        beats_guessing: Whether some method is shown to be better than the largest
            class; None where that was not tested.
        beats_mlp: The same for `mlp`.
        beats_backbone: Whether some variant is shown to be better than its backbone.
        test_to_train: Test nodes per training node, for which tests over splits that
            share training nodes are corrected; 0 where they share none, None where it
            is not known.
    """

    dataset: str
    metric: Metric
    selection: str
    pairing: Literal["seeds", "splits"]
    splits: int
    results: tuple[MethodResult, ...]
    largest_class: LargestClass | None = None
    pairs: tuple[PairedComparison, ...] = ()
    best_set: BestSet | None = None
    fewer: tuple[int, float] | None = None
    compared_on: tuple[int, ...] = ()
    beats_guessing: Claim | None = None
    beats_mlp: Claim | None = None
    beats_backbone: Claim | None = None
    test_to_train: float | None = 0.0

    def __getitem__(self, method: str) -> MethodResult:
        return next(result for result in self.results if result.method == method)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods that have runs."""
        return tuple(result.method for result in self.results)

    @property
    def against_baseline(self) -> dict[str, PairedComparison]:
        """By method, its comparison with its baseline, where it has one."""
        return {r.method: r.comparison for r in self.results if r.comparison}

    @property
    def against_highest(self) -> dict[str, PairedComparison]:
        """By method, its comparison with the highest mean; empty without pairs."""
        best = self.pairs[0].baseline if self.pairs else None
        return {pair.method: pair for pair in self.pairs if pair.baseline == best}

    @property
    def best(self) -> MethodResult | None:
        """The method with the highest mean; None where no run finished.

        Methods that could not be tested are left out, unless none could.
        """
        scored = [r for r in self.results if r.summary.mean is not None]
        if self.best_set is not None:
            return self[self.best_set.members[0]]
        merit = self.metric.merit
        return max(scored, key=lambda r: merit(r.summary.mean or 0.0), default=None)

    def could_be_best(self, method: str) -> str:
        """What `BestSet.standing` says of a method; a dash where nothing was tested."""
        return "-" if self.best_set is None else self.best_set.standing(method)

    @property
    def simplest(self) -> str | None:
        """The method of the best set with the fewest parameters; None if unknown."""
        members = () if self.best_set is None else self.best_set.members
        return simplest_of({m: self[m].parameter_count for m in members})


def simplest_of(parameter_counts: Mapping[str, float | None]) -> str | None:
    """The method with the fewest parameters; None unless all are known."""
    known = {m: count for m, count in parameter_counts.items() if count is not None}
    is_known = len(known) == len(parameter_counts) > 0
    return min(known, key=known.__getitem__) if is_known else None
