"""The result of runs on one dataset: each method's scores, and their comparisons."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tempergat.base import UserError
from tempergat.comparison.plan import backbone_of
from tempergat.comparison.results.result import (
    LARGEST_CLASS,
    DatasetResult,
    LargestClass,
    MethodResult,
)
from tempergat.comparison.storage.rows import Origin
from tempergat.nn import METHODS
from tempergat.stats import (
    Claim,
    PairedComparison,
    best_set,
    claim_beats,
    claim_of,
    compare_all,
    compare_pairs,
    pairs_for_fewer,
    shared_pairs,
    summarise,
)
from tempergat.training import METRICS, LayerRecord, Metric, Run, confusion_rows


def dataset_result(
    runs: Sequence[Run],
    methods: Sequence[str],
    against: str | Mapping[str, str],
    metric: str = "accuracy",
    selection: str = "best_val_accuracy",
    *,
    tuned: bool = False,
    beside_backbones: Sequence[Run] = (),
    all_pairs: bool = False,
    test_to_train: float | None = 0.0,
) -> DatasetResult:
    """Summarise and compare the runs on one dataset.

    Args:
        runs: Runs on one dataset, one configuration per method; on one split, or on
            several in turn.
        methods: The methods to report, in this order.
        against: The baseline of all methods, or the baseline of each.
        metric: The name of the metric of the scores.
        selection: Which rule's scores to use.
        tuned: Whether a method may have another configuration on each split.
        beside_backbones: The runs of variants that are compared with their backbones,
            where they are other ones than those reported.
        all_pairs: Whether all pairs of methods are tested too.
        test_to_train: Test nodes per training node, where splits share training nodes.

    Raises:
        UserError: The runs come from several datasets, or a method's runs have several
            configurations or two runs of one seed.
    """
    judged_by = METRICS[metric]
    by_method: dict[str, list[Run]] = {}
    for method in methods:
        of_method = [run for run in runs if run.method == method]
        if of_method:
            by_method[method] = sorted(of_method, key=lambda run: run.seed)
    _check_comparable(runs, by_method, tuned)
    split_count = len({run.split for run in runs})
    pair_scores = {
        method: _merits(of_method, judged_by, selection, by_split=split_count > 1)
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
    used = shared_pairs(pair_scores)
    # Without shared pairs no test can be made; with them, none of other methods.
    rest = [m for m in pair_scores if m not in used]
    in_order = {**used, **{m: {} if used else pair_scores[m] for m in rest}}
    keys = {k for s in used.values() for k, score in s.items() if score is not None}
    counts = _test_nodes(runs)
    # What one test node changes in a score.
    step = judged_by.shown(1 / min(map(sum, counts.values()))) if counts else 0.0
    beside = {
        method: {key: score for key, score in scores.items() if key in keys}
        for method, baseline in compared.items()
        if baseline == backbone_of(method)
        and (of_method := [run for run in beside_backbones if run.method == method])
        and (scores := _merits(of_method, judged_by, selection, split_count > 1))
    }
    comparisons = compare_pairs({**in_order, **beside}, compared, ratio, step)
    by_name = {c.method: _of_scores(c, judged_by) for c in comparisons}
    results = tuple(
        _method_result(
            method,
            of_method,
            judged_by,
            selection,
            by_name.get(method),
            ratio,
            keys if method in used else None,
            by_split=split_count > 1,
        )
        for method, of_method in by_method.items()
    )
    largest = _largest_class(runs, counts, judged_by)
    variants = [
        c
        for c in comparisons
        if c.method in METHODS
        and c.baseline == METHODS[c.method].backbone
        and c.method in used
        and c.baseline in used
    ]
    claims = (largest is not None) + ("mlp" in used) + bool(variants)
    together: Any = {"claims": claims, "least": judged_by.least}
    beats_guessing = beats_mlp = beats_backbone = None
    if largest is not None and used:
        guess = {k: judged_by.merit(score) for k, score in largest.scores.items()}
        with_guess = {**used, LARGEST_CLASS: guess}
        beats_guessing = claim_beats(with_guess, LARGEST_CLASS, ratio, step, **together)
    if "mlp" in used:
        beats_mlp = claim_beats(used, "mlp", ratio, step, **together)
    if variants:
        is_shown = any(c.verdict == "better" for c in variants)
        beats_backbone = claim_of(variants, is_shown, ratio, **together)
    return DatasetResult(
        dataset=runs[0].dataset if runs else "",
        metric=judged_by,
        selection=selection,
        pairing="splits" if split_count > 1 else "seeds",
        splits=split_count,
        results=results,
        largest_class=largest,
        pairs=tuple(
            _of_scores(pair, judged_by)
            for pair in (compare_all(in_order, ratio, step) if all_pairs else ())
        ),
        best_set=best_set(pair_scores, ratio, step) if all_pairs else None,
        fewer=pairs_for_fewer(used, ratio, step) if all_pairs else None,
        compared_on=tuple(sorted(keys)),
        beats_guessing=_claim_of_scores(beats_guessing, judged_by),
        beats_mlp=_claim_of_scores(beats_mlp, judged_by),
        beats_backbone=_claim_of_scores(beats_backbone, judged_by),
        test_to_train=test_to_train,
    )


def _test_nodes(runs: Sequence[Run]) -> dict[int, list[int]]:
    """By split, the test nodes of each class, where a run has a confusion matrix."""
    return {
        run.split: [sum(row) for row in run.confusion]
        for run in runs
        if run.confusion and any(map(any, run.confusion))
    }


def _largest_class(
    runs: Sequence[Run], counts: Mapping[int, Sequence[int]], metric: Metric
) -> LargestClass | None:
    """The largest class and its scores; None where no run has a confusion matrix."""
    if not counts or len({len(of_split) for of_split in counts.values()}) > 1:
        return None
    label = int(np.sum(list(counts.values()), axis=0).argmax())
    by_split = {
        split: metric.shown(metric.constant(of_split, label))
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


def _of_scores(pair: PairedComparison, metric: Metric) -> PairedComparison:
    """A comparison of merits as one of scores."""
    if metric.better == "higher":
        return pair
    names = ("difference", "low", "high", "effect_size")
    found = (getattr(pair, name) for name in names)
    difference, low, high, effect = (None if x is None else -x for x in found)
    return replace(pair, difference=difference, low=high, high=low, effect_size=effect)


def _claim_of_scores(claim: Claim | None, metric: Metric) -> Claim | None:
    if claim is None or claim.best is None:
        return claim
    return replace(claim, best=_of_scores(claim.best, metric))


def _merits(
    runs: Sequence[Run], metric: Metric, selection: str, by_split: bool
) -> dict[int, float | None]:
    """Merits of shown scores by seed; by split, where there are several, their means.

    Runs on one split are not independent, so together they count as one observation.
    """
    scores = {
        run.seed: metric.merit(metric.shown(run.scores[selection].test))
        if run.status == "done"
        else None
        for run in runs
    }
    if not by_split:
        return scores
    pairs: dict[int, float | None] = {}
    for split in sorted({run.split for run in runs}):
        of_split = [scores[run.seed] for run in runs if run.split == split]
        finished = [score for score in of_split if score is not None]
        is_complete = len(finished) == len(of_split)
        pairs[split] = float(np.mean(finished)) if is_complete else None
    return pairs


def _method_result(
    method: str,
    runs: Sequence[Run],
    metric: Metric,
    selection: str,
    comparison: PairedComparison | None,
    test_to_train: float,
    keys: Collection[int] | None,
    *,
    by_split: bool,
) -> MethodResult:
    finished = [run for run in runs if run.status == "done"]
    _require_one_shape(method, finished)
    scores = {run.seed: metric.shown(run.scores[selection].test) for run in finished}
    used = [
        run
        for run in finished
        if keys is None or (run.split if by_split else run.seed) in keys
    ]
    failed = len(runs) - len(finished)
    summary = summarise([scores[run.seed] for run in used], failed)
    if by_split:
        # The interval is over splits.
        means = _merits(used, metric, selection, by_split=True).values()
        of_splits = summarise(
            [metric.merit(mean) for mean in means if mean is not None],
            failed,
            test_to_train,
        )
        low, high, mean = of_splits.low, of_splits.high, summary.mean
        if mean is not None and low is not None and high is not None:
            low, high = mean - (high - low) / 2, mean + (high - low) / 2
        summary = replace(summary, low=low, high=high, values=of_splits.values)
    parameters = [run.parameter_count for run in runs]
    known = [count for count in parameters if count is not None]
    confusions = [run.confusion for run in finished if run.confusion]
    confusion, only_class = None, {}
    if confusions and len(confusions) == len(finished):
        confusion = confusion_rows(np.asarray(sum(map(np.array, confusions))))
        labels = {run.seed: _only_class(run) for run in finished}
        only_class = {s: label for s, label in labels.items() if label is not None}
    return MethodResult(
        method=method,
        summary=summary,
        scores=scores,
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


def _mean_layers(layers: Sequence[LayerRecord]) -> LayerRecord:
    if not layers:
        return LayerRecord()
    return LayerRecord(
        tuple(np.mean([layer.temperatures for layer in layers], axis=0).tolist()),
        tuple(np.mean([layer.gate_means for layer in layers], axis=0).tolist()),
    )
