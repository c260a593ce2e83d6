"""The table of a result as people read it."""

from collections.abc import Iterable, Mapping, Sequence

from tempergat.comparison.largest_class import LARGEST_CLASS
from tempergat.comparison.report.formats import Table
from tempergat.comparison.report.one_class import ONE_CLASS_MARK, notes_on_one_class
from tempergat.comparison.report.words import mean_and_std, p_value, percent, signed
from tempergat.comparison.results import (
    METRIC_NAMES,
    DatasetResult,
    MethodResult,
)
from tempergat.nn import description_of
from tempergat.stats import PairedComparison, Summary

# The column that says which methods are best; those after it are about backbones.
AGAINST_HIGHEST = "against highest"
AGAINST_BACKBONE = "against backbone"
_SELECTION_WORDS = {
    "best_val_accuracy": "at the first epoch of best validation {metric}",
    "last_epoch": "at the last epoch",
    "best_val_loss": "at the epoch of least validation loss",
}
# In a note; the JSON has them all.
_FAILURES_SHOWN = 3
# With fewer values, the t-interval of a mean is too wide to say anything.
_MIN_VALUES_FOR_INTERVAL = 5
# At the end of the names of variants of GATv2.
_V2 = "_v2"
_LOWEST_SCORE, _HIGHEST_SCORE = 0.0, 100.0


def result_table(result: DatasetResult, notes: Sequence[str] = ()) -> Table:
    """The table of scores, intervals, differences and verdicts.

    Args:
        result: The result of one dataset.
        notes: Sentences to put below the table, before those on failed runs.
    """
    compared = shown_comparisons(result)
    baselines = sorted({comparison.baseline for comparison in compared.values()})
    against = f"against {baselines[0]}" if len(baselines) == 1 else AGAINST_BACKBONE
    any_failed = any(r.summary.failed for r in result.results)
    columns = ["method", METRIC_NAMES[result.metric], "95 % interval", "runs"]
    columns += ["failed"] if any_failed else []
    columns += [AGAINST_HIGHEST] if has_both_questions(result) else []
    columns += [against, "p", "d", "verdict"]
    metric = METRIC_NAMES[result.metric]
    selected = _SELECTION_WORDS[result.selection].format(metric=metric)
    return Table(
        f"{result.dataset}: test {metric} in percent, {selected}",
        tuple(columns),
        tuple(_cells(result, r, compared, any_failed) for r in result.results),
        (
            *_notes_on_statistics(result, bool(baselines)),
            *notes_on_largest_class([result]),
            *notes_on_methods(result.methods),
            *notes,
            *notes_on_one_class(result),
            *_notes_on_failures(result),
        ),
        footer=_footer(result, len(columns)),
    )


def notes_on_methods(methods: Sequence[str]) -> list[str]:
    """What the methods are, but for those whose name says it.

    Variants of GATv2 are described by those of GAT, where these are there too.
    """
    described: dict[str, str] = {}
    for name in methods:
        words = description_of(name)
        is_described = name.endswith(_V2) and name.removesuffix(_V2) in described
        if words is not None and words.lower() != name and not is_described:
            described[name] = words
    if not described:
        return []
    listed = [f"{name}: {words}" for name, words in described.items()]
    if any(f"{name}{_V2}" in methods for name in described):
        listed.append(f"those ending in {_V2}: the same with GATv2")
    return [f"{'; '.join(listed)}."]


def notes_on_largest_class(results: Iterable[DatasetResult]) -> list[str]:
    """What the row of the largest class is, where one of the results has it."""
    if all(result.largest_class is None for result in results):
        return []
    return [
        f"{LARGEST_CLASS}: what the class of most test nodes scores as the answer for "
        "every node; never ranked or tested."
    ]


def _footer(result: DatasetResult, columns: int) -> tuple[tuple[str, ...], ...]:
    largest = result.largest_class
    if largest is None:
        return ()
    rest = ("-",) * (columns - 2)
    return ((LARGEST_CLASS, percent(largest.mean), *rest),)


def shown_comparisons(result: DatasetResult) -> dict[str, PairedComparison]:
    """The comparison that a row of the table gives in numbers, by method.

    It is that with the method's baseline; with the method of the highest mean where no
    method has a baseline.
    """
    compared = {r.method: r.comparison for r in result.results if r.comparison}
    return compared or _against_highest(result)


def has_both_questions(result: DatasetResult) -> bool:
    """Whether methods are compared with the highest mean and with baselines."""
    return bool(result.pairs) and any(r.comparison for r in result.results)


def against_highest(result: DatasetResult, method: str) -> str:
    """What the tests of all pairs say of a method and the one of the highest mean."""
    found = _against_highest(result)
    if method in found:
        return found[method].verdict
    return "highest" if method in {c.baseline for c in found.values()} else "-"


def verdict_word(result: DatasetResult, method: str) -> str:
    """The last cell of a method's row."""
    compared = {r.method: r.comparison for r in result.results if r.comparison}
    if not compared:
        return against_highest(result, method)
    if method in compared:
        return compared[method].verdict
    return "baseline" if method in {c.baseline for c in compared.values()} else "-"


def _against_highest(result: DatasetResult) -> dict[str, PairedComparison]:
    """The comparisons with the method of the highest mean."""
    best = result.pairs[0].baseline if result.pairs else None
    return {pair.method: pair for pair in result.pairs if pair.baseline == best}


def shown_interval(summary: Summary, splits: int = 1) -> tuple[float, float] | None:
    """The interval of a mean score as tables and figures show it.

    Args:
        summary: Scores in percent.
        splits: Number of splits; runs that share a split count as one value.

    Returns:
        The ends within 0 and 100; None for fewer than five values.
    """
    values = min(summary.runs, splits) if splits > 1 else summary.runs
    if summary.low is None or summary.high is None or values < _MIN_VALUES_FOR_INTERVAL:
        return None
    return max(summary.low, _LOWEST_SCORE), min(summary.high, _HIGHEST_SCORE)


def interval_text(summary: Summary, splits: int = 1) -> str:
    """`78.10 to 80.33`; a dash where there are too few values."""
    interval = shown_interval(summary, splits)
    return "-" if interval is None else " to ".join(percent(end) for end in interval)


def _cells(
    dataset: DatasetResult,
    result: MethodResult,
    compared: Mapping[str, PairedComparison],
    any_failed: bool,
) -> tuple[str, ...]:
    summary, comparison = result.summary, compared.get(result.method)
    cells = [
        f"{result.method} {ONE_CLASS_MARK}" if result.only_class else result.method,
        mean_and_std(summary.mean, summary.std),
        interval_text(summary, dataset.splits),
        str(summary.runs),
    ]
    cells += [str(summary.failed)] if any_failed else []
    if has_both_questions(dataset):
        cells.append(against_highest(dataset, result.method))
    cells += (
        ["-", "-", "-"]
        if comparison is None
        else [
            signed(comparison.difference),
            p_value(comparison.t_p_holm),
            signed(comparison.effect_size),
        ]
    )
    return (*cells, verdict_word(dataset, result.method))


def _notes_on_statistics(result: DatasetResult, compared: bool) -> list[str]:
    notes = []
    if compared:
        notes.append(
            f"Means ± standard deviation over runs. Differences over paired "
            f"{result.pairing}; p: paired t-test, Holm-corrected; within noise: p of "
            "0.05 or more."
        )
        notes.append("d: Cohen's d of the pairs.")
        if result.pairs:
            notes.append(
                "Which methods are best is tested over all pairs of methods, whether a "
                "variant beats its backbone as a second question; each is corrected "
                "for its own number of tests."
                if has_both_questions(result)
                else "Holm's correction covers all pairs of methods."
            )
    if any(
        r.scores and shown_interval(r.summary, result.splits) is None
        for r in result.results
    ):
        of_what = "runs of a method" if result.splits == 1 else "splits"
        notes.append(
            f"A 95 % interval needs {_MIN_VALUES_FOR_INTERVAL} {of_what} or more."
        )
    if result.splits > 1:
        most = max(r.summary.runs + r.summary.failed for r in result.results)
        notes.append(
            f"The runs take turns over {result.splits} splits; runs that share one "
            "count as one, by their mean, in intervals and pairs."
            if most > result.splits
            else f"Each run is on a split of its own, one of {result.splits}."
        )
    return notes


def _notes_on_failures(result: DatasetResult) -> list[str]:
    return [
        f"{r.method}: {r.summary.failed} of {r.summary.runs + r.summary.failed} runs "
        f"failed and are not in its mean ({_listed(r.failures)})."
        for r in result.results
        if r.failures
    ]


def _listed(failures: Sequence[str]) -> str:
    shown = "; ".join(failures[:_FAILURES_SHOWN])
    more = len(failures) - _FAILURES_SHOWN
    return f"{shown}; and {more} more" if more > 0 else shown
