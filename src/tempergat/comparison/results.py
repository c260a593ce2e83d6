"""The result of one dataset: each method's scores in percent, and comparisons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tempergat.base import UserError
from tempergat.comparison.storage.groups import Origin
from tempergat.stats import (
    PairedComparison,
    Summary,
    any_beats,
    best_set,
    compare_all,
    compare_pairs,
    ranked,
    summarise,
)
from tempergat.training import LayerRecord, Run, constant_score

METRIC_NAMES = {
    "accuracy": "accuracy",
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "roc_auc": "ROC AUC",
    "average_precision": "average precision",
}
# The name of the row of a constant answer, which every table shows beside the methods.
LARGEST_CLASS = "largest class"


@dataclass(frozen=True)
class MethodResult:
    """One method's runs on one dataset.

    Attributes:
        summary: Mean, deviation and interval of the finished runs' scores.
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
    confusion: tuple[tuple[int, ...], ...] | None = None
    only_class: dict[int, int] = field(default_factory=dict)
    parameter_count: float | None = None


@dataclass(frozen=True)
class LargestClass:
    """One class as the answer for every test node; no method, and never ranked.

    It is the class of most test nodes, those of all splits together: no other class,
    given as the answer on all splits, is right more often.

    Attributes:
        label: The class.
        scores: Its scores in percent by seed; by split where there are several.
        mean: Their mean, where every seed counts once, as in the mean of a method.
    """

    label: int
    scores: dict[int, float]
    mean: float


@dataclass(frozen=True)
class DatasetResult:
    """All methods on one dataset.

    Attributes:
        selection: The rule that chose each run's epoch.
        pairing: What the comparisons' pairs share.
        splits: How many splits the runs are on.
        results: One for each method that has runs, in the order given.
        largest_class: What answering the largest class for every node scores; None
            where no run has a confusion matrix.
        pairs: Tests of all pairs of methods, the higher mean of a pair as baseline,
            those with too few runs last; none where these were not made.
        beats_guessing: Whether some method is shown to be better than the largest
            class; None where that was not tested.
        beats_mlp: The same for `mlp`.
        test_to_train: Test nodes per training node, for which tests over splits that
            share training nodes are corrected; 0 where they share none, None where it
            is not known.
    """

    dataset: str
    metric: str
    selection: str
    pairing: Literal["seeds", "splits"]
    splits: int
    results: tuple[MethodResult, ...]
    largest_class: LargestClass | None = None
    pairs: tuple[PairedComparison, ...] = ()
    beats_guessing: bool | None = None
    beats_mlp: bool | None = None
    test_to_train: float | None = 0.0

    def __getitem__(self, method: str) -> MethodResult:
        return next(result for result in self.results if result.method == method)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods that have runs."""
        return tuple(result.method for result in self.results)

    @property
    def best(self) -> MethodResult | None:
        """The method with the highest mean; None where no run finished.

        Where all pairs were tested, methods with too few runs for a test are left out.
        """
        if self.pairs:
            return self[self.pairs[0].baseline]
        scored = [r for r in self.results if r.summary.mean is not None]
        return max(scored, key=lambda r: r.summary.mean or 0.0, default=None)

    @property
    def best_set(self) -> tuple[str, ...]:
        """The method of the highest mean and those tested and not shown to be worse.

        Empty where that was not tested.
        """
        return best_set(self.pairs)

    @property
    def simplest(self) -> str | None:
        """The method of the best set with the fewest parameters; None if unknown."""
        return simplest_of({m: self[m].parameter_count for m in self.best_set})


def simplest_of(parameter_counts: Mapping[str, float | None]) -> str | None:
    """The method with the fewest parameters; None unless all are known."""
    known = {m: count for m, count in parameter_counts.items() if count is not None}
    is_known = len(known) == len(parameter_counts) > 0
    return min(known, key=known.__getitem__) if is_known else None


def dataset_result(
    runs: Sequence[Run],
    methods: Sequence[str],
    against: str | Mapping[str, str],
    metric: str = "accuracy",
    selection: str = "best_val_accuracy",
    *,
    tuned: bool = False,
    all_pairs: bool = False,
    test_to_train: float | None = 0.0,
) -> DatasetResult:
    """Summarise and compare the runs on one dataset.

    Args:
        runs: Runs on one dataset, one configuration per method; on one split, or on
            several in turn.
        methods: The methods to report, in this order.
        against: The baseline of all methods, or the baseline of each.
        metric: The metric of the scores.
        selection: Which rule's scores to use.
        tuned: Whether a method may have another configuration on each split.
        all_pairs: Whether all pairs of methods are tested too.
        test_to_train: Test nodes per training node, where splits share training nodes.

    Raises:
        UserError: The runs come from several datasets, or a method's runs have several
            configurations or two runs of one seed.
    """
    by_method: dict[str, list[Run]] = {}
    for method in methods:
        of_method = [run for run in runs if run.method == method]
        if of_method:
            by_method[method] = sorted(of_method, key=lambda run: run.seed)
    _check_comparable(runs, by_method, tuned)
    split_count = len({run.split for run in runs})
    pair_scores = {
        method: _pair_scores(of_method, selection, by_split=split_count > 1)
        for method, of_method in by_method.items()
    }
    baselines = (
        {method: against for method in by_method if method != against}
        if isinstance(against, str)
        else against
    )
    compared = {
        method: baseline
        for method, baseline in baselines.items()
        if method in by_method and baseline in by_method
    }
    ratio = test_to_train or 0.0
    comparisons = {c.method: c for c in compare_pairs(pair_scores, compared, ratio)}
    results = tuple(
        _method_result(method, of_method, selection, comparisons.get(method), ratio)
        for method, of_method in by_method.items()
    )
    means = {r.method: r.summary.mean for r in results}
    scored = {method: mean for method, mean in means.items() if mean is not None}
    in_order = ranked(pair_scores, scored)
    largest = _largest_class(runs, metric)
    beats_guessing = None
    if largest is not None:
        with_guess = {**in_order, LARGEST_CLASS: largest.scores}
        beats_guessing = any_beats(with_guess, LARGEST_CLASS, ratio)
    return DatasetResult(
        dataset=runs[0].dataset if runs else "",
        metric=metric,
        selection=selection,
        pairing="splits" if split_count > 1 else "seeds",
        splits=split_count,
        results=results,
        largest_class=largest,
        pairs=tuple(compare_all(in_order, ratio)) if all_pairs else (),
        beats_guessing=beats_guessing,
        beats_mlp=any_beats(in_order, "mlp", ratio) if "mlp" in in_order else None,
        test_to_train=test_to_train,
    )


def _largest_class(runs: Sequence[Run], metric: str) -> LargestClass | None:
    """The largest class and its scores; None where no run has a confusion matrix."""
    counts = {
        run.split: [sum(row) for row in run.confusion]
        for run in runs
        if run.confusion and any(map(any, run.confusion))
    }
    if not counts or len({len(of_split) for of_split in counts.values()}) > 1:
        return None
    label = int(np.sum(list(counts.values()), axis=0).argmax())
    by_split = {
        split: 100.0 * constant_score(metric, of_split, label)
        for split, of_split in sorted(counts.items())
    }
    by_seed = {
        seed: by_split[split]
        for seed, split in sorted({(run.seed, run.split) for run in runs})
        if split in by_split
    }
    several = len({run.split for run in runs}) > 1
    return LargestClass(
        label, by_split if several else by_seed, float(np.mean(list(by_seed.values())))
    )


def _check_comparable(
    runs: Sequence[Run], by_method: Mapping[str, Sequence[Run]], tuned: bool
) -> None:
    data = sorted({(run.dataset, run.split, run.fingerprint) for run in runs})
    if len(data) > len({split for _, split, _ in data}):
        names = sorted({(dataset, print_) for dataset, _, print_ in data})
        seen = ", ".join(f"{dataset} ({print_[:8]})" for dataset, print_ in names)
        raise UserError(f"the runs come from {len(names)} datasets: {seen}; choose one")
    for method, of_method in by_method.items():
        hashes = sorted({run.config_hash for run in of_method})
        allowed = len({run.split for run in of_method}) if tuned else 1
        if len({(run.config_hash, tuned and run.split) for run in of_method}) > allowed:
            raise UserError(
                f"{method} on {of_method[0].dataset} has runs of {len(hashes)} "
                f"configurations ({', '.join(hashes)}); choose one"
            )
        if len({run.seed for run in of_method}) < len(of_method):
            raise UserError(_two_runs_of_one_seed(method, of_method))


def _two_runs_of_one_seed(method: str, runs: Sequence[Run]) -> str:
    name = f"{method} on {runs[0].dataset}"
    origins = sorted({Origin(run.device, run.numerics) for run in runs})
    if len(origins) == 1:
        return f"{name} has two runs of one seed; remove one"
    return (
        f"{name} has runs of the same seeds made on {' and '.join(map(str, origins))}; "
        "keep those of one"
    )


def _pair_scores(
    runs: Sequence[Run], selection: str, *, by_split: bool
) -> dict[int, float | None]:
    """Scores in percent by seed; by split, where there are several, their means.

    Runs on one split are not independent, so together they count as one observation.
    """
    if not by_split:
        return {run.seed: _score(run, selection) for run in runs}
    pairs: dict[int, float | None] = {}
    for split in sorted({run.split for run in runs}):
        scores = [_score(run, selection) for run in runs if run.split == split]
        finished = [score for score in scores if score is not None]
        is_complete = len(finished) == len(scores)
        pairs[split] = float(np.mean(finished)) if is_complete else None
    return pairs


def _score(run: Run, selection: str) -> float | None:
    return 100.0 * run.scores[selection].test if run.status == "done" else None


def _method_result(
    method: str,
    runs: Sequence[Run],
    selection: str,
    comparison: PairedComparison | None,
    test_to_train: float,
) -> MethodResult:
    finished = [run for run in runs if run.status == "done"]
    _require_one_shape(method, finished)
    parameters = [run.parameter_count for run in runs]
    known = [count for count in parameters if count is not None]
    confusions = [run.confusion for run in finished if run.confusion]
    confusion, only_class = None, {}
    if confusions and len(confusions) == len(finished):
        confusion = tuple(map(tuple, np.sum(confusions, axis=0).tolist()))
        labels = {run.seed: _only_class(run) for run in finished}
        only_class = {s: label for s, label in labels.items() if label is not None}
    return MethodResult(
        method=method,
        summary=_summary(finished, selection, len(runs) - len(finished), test_to_train),
        scores={run.seed: 100.0 * run.scores[selection].test for run in finished},
        comparison=comparison,
        selected=_mean_layers([run.selected for run in finished]),
        last=_mean_layers([run.last for run in finished]),
        failures=tuple(_failure(run) for run in runs if run.status == "failed"),
        time_s=sum(run.time_s for run in runs),
        confusion=confusion,
        only_class=only_class,
        parameter_count=float(np.mean(known)) if len(known) == len(runs) else None,
    )


def _require_one_shape(method: str, runs: Sequence[Run]) -> None:
    """Refuse runs of one method that differ in layers or classes.

    Training cannot have made them, so somebody has altered them.
    """
    layers = {
        tuple(
            len(values)
            for record in (run.selected, run.last)
            for values in (record.temperatures, record.gate_means)
        )
        for run in runs
    }
    classes = {
        tuple(len(row) for row in run.confusion) for run in runs if run.confusion
    }
    is_square = all(set(rows) == {len(rows)} for rows in classes)
    if len(layers) > 1 or len(classes) > 1 or not is_square:
        raise UserError(
            f"the runs of {method} differ in their numbers of layers or classes, so "
            "some were altered; restore them from a copy, or train again"
        )


def _only_class(run: Run) -> int | None:
    """The class that a run predicts for every test node; None where it is not one."""
    counts = np.array(run.confusion)
    # With test nodes of one class there is nothing else to predict.
    if np.count_nonzero(counts.sum(1)) > 1 and np.count_nonzero(counts.sum(0)) == 1:
        return int(counts.sum(0).argmax())
    return None


def _failure(run: Run) -> str:
    reason = run.reason or ""
    when = f" at epoch {run.failed_epoch}"
    if run.failed_epoch is None or when in reason:
        when = ""
    return f"seed {run.seed}: {reason}{when}"


def _summary(
    finished: Sequence[Run], selection: str, failed: int, test_to_train: float
) -> Summary:
    """The summary of the runs; with several splits, the interval is over splits."""
    of_runs, of_splits = (
        summarise([s for s in scores.values() if s is not None], failed, ratio)
        for scores, ratio in (
            (_pair_scores(finished, selection, by_split=False), 0.0),
            (_pair_scores(finished, selection, by_split=True), test_to_train),
        )
    )
    low, high = of_splits.low, of_splits.high
    if of_runs.mean is None or low is None or high is None:
        return of_runs
    half = (high - low) / 2
    return replace(of_runs, low=of_runs.mean - half, high=of_runs.mean + half)


def _mean_layers(layers: Sequence[LayerRecord]) -> LayerRecord:
    if not layers:
        return LayerRecord()
    return LayerRecord(
        tuple(np.mean([layer.temperatures for layer in layers], axis=0).tolist()),
        tuple(np.mean([layer.gate_means for layer in layers], axis=0).tolist()),
    )
