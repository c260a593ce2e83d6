"""A result as plain values: rows and JSON."""

from dataclasses import asdict
from typing import Any

from tempergat.base import replace_non_finite
from tempergat.comparison.results.result import (
    LARGEST_CLASS,
    DatasetResult,
    MethodResult,
)
from tempergat.nn import description_of
from tempergat.stats import Claim, PairedComparison
from tempergat.training import LayerRecord, confusion_as_json

_COMPARISON_COLUMNS = (
    "baseline",
    "difference",
    "difference_low",
    "difference_high",
    "t_p",
    "t_p_holm",
    "plain_p_holm",
    "wilcoxon_p",
    "effect_size",
    "correlation",
    "pairs",
    "lost_pairs",
    "verdict",
)
_CLAIMS = ("beats_guessing", "beats_mlp", "beats_backbone")
# Lists and groups of values, which only the JSON has.
_NESTED = (
    "comparison",
    "scores",
    "failures",
    "selected",
    "last",
    "confusion",
    "only_class",
)


def as_json(result: DatasetResult) -> dict[str, Any]:
    """The result as plain JSON values, scores as people see them."""
    largest = result.largest_class
    return {
        "dataset": result.dataset,
        "metric": result.metric.name,
        "selection": result.selection,
        "pairing": result.pairing,
        "splits": result.splits,
        "test_to_train": result.test_to_train,
        "pairs": [_comparison(pair) for pair in result.pairs],
        **{name: _claim(getattr(result, name)) for name in _CLAIMS},
        "results": [_record(r) for r in result.results],
        "largest_class": largest
        and {
            "class": largest.label,
            "mean": largest.mean,
            "scores": {str(key): score for key, score in largest.scores.items()},
        },
    }


def as_rows(result: DatasetResult) -> list[dict[str, Any]]:
    """One row of plain values per method, numbers in full.

    The last row is that of the largest class, where it is known: it has a mean only.
    """
    of_all = {
        "dataset": result.dataset,
        "metric": result.metric.name,
        "selection": result.selection,
        "splits": result.splits,
    }
    rows = []
    for method in result.results:
        record = _record(method)
        comparison = record["comparison"] or {}
        rows.append(
            {
                **of_all,
                **{k: v for k, v in record.items() if k not in _NESTED},
                "could_be_best": result.could_be_best(method.method),
                **{name: comparison.get(name) for name in _COMPARISON_COLUMNS},
            }
        )
    if result.largest_class is not None and rows:
        known = {"method": LARGEST_CLASS, "mean": result.largest_class.mean}
        rows.append({**dict.fromkeys(rows[0]), **of_all, **known})
    return rows


def _record(result: MethodResult) -> dict[str, Any]:
    comparison = None
    if result.comparison is not None:
        comparison = _comparison(result.comparison)
        del comparison["method"]
    return {
        "method": result.method,
        "description": description_of(result.method),
        **asdict(result.summary),
        "parameter_count": result.parameter_count,
        "time_s": result.time_s,
        "comparison": comparison,
        "scores": {str(seed): score for seed, score in result.scores.items()},
        "failures": list(result.failures),
        "selected": _layers(result.selected),
        "last": _layers(result.last),
        "confusion": confusion_as_json(result.confusion),
        "only_class": {str(seed): label for seed, label in result.only_class.items()},
    }


def _comparison(pair: PairedComparison) -> dict[str, Any]:
    """A comparison as plain values; Wilcoxon's p stays uncorrected."""
    values = asdict(pair)
    del values["wilcoxon_p_holm"], values["std"], values["standard_error"]
    values["difference_low"] = values.pop("low")
    values["difference_high"] = values.pop("high")
    return values


def _claim(claim: Claim | None) -> dict[str, Any] | None:
    if claim is None:
        return None
    best = claim.best and _comparison(claim.best)
    return {**asdict(claim), "best": best}


def _layers(record: LayerRecord) -> dict[str, list[float | None]]:
    names = ("temperatures", "gate_means")
    return {name: replace_non_finite(getattr(record, name)) for name in names}
