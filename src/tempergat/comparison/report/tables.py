"""The table of a result as people read it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tempergat.comparison.report.formats import (
    Table,
    mean_and_std,
    p_value,
    signed,
)
from tempergat.comparison.report.sentences import ONE_CLASS_MARK, notes_on_one_class
from tempergat.comparison.results.result import LARGEST_CLASS, DatasetResult
from tempergat.nn import description_of
from tempergat.stats import PairedComparison, RankTable, Summary
from tempergat.training import Metric

# The column of the answer; those after it are about backbones.
COULD_BE_BEST = "could be best"
AGAINST_BACKBONE = "against backbone"
# The view of the report that has a column, and what the column means.
_LOOKS = {
    "score": ("scores", "mean ± standard deviation over runs"),
    "95 % interval": ("scores",),
    COULD_BE_BEST: ("", "whether no other method is shown to be better (95 %)"),
    "difference": ("differences", "mean of paired differences{points}"),
    "its 95 % interval": ("differences",),
    "against": ("differences",),
    "p": ("differences", "paired t-test, Holm-corrected"),
    "d": ("differences", "Cohen's d of the pairs"),
}
# The columns of a table that is not a report, where there are such.
_SHOWN = (
    *("method", "score", "95 % interval", "runs", "failed"),
    *(COULD_BE_BEST, "difference", "p", "d", "verdict"),
)
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


NOTE_ON_RECIPES = (
    "The recipe default adds to plain a residual in each layer, a linear map of its "
    "input, and batch norm between layers. Each method has the one of better mean "
    "validation score, chosen on each split by itself; a variant is compared with its "
    "backbone under what the backbone has."
)


class Column(NamedTuple):
    """A column of the table of scores.

    Attributes:
        heading: Its name.
        texts: What its cells say, one for each method.
        keys: The values that they are sorted by.
        view: The one of the report's two views that has it; empty for both.
        about: What it means; the report shows it while the pointer is over the heading.
    """

    heading: str
    texts: Sequence[str]
    keys: Sequence[float | str | None]
    view: str = ""
    about: str = ""


def result_columns(result: DatasetResult) -> dict[str, Column]:
    """All columns of a table of the result by name, in the order of the report."""
    metric, summaries = result.metric, [row.summary for row in result.results]
    by_digits = partial(signed, digits=metric.digits)
    shown = shown_comparisons(result)
    compared = [shown.get(method) for method in result.methods]
    standing = [result.could_be_best(method) for method in result.methods]

    def of_pairs(name: str) -> list[Any]:
        return [None if pair is None else getattr(pair, name) for pair in compared]

    low, high, baselines = (of_pairs(name) for name in ("low", "high", "baseline"))
    # What is sorted by, and what it is called.
    cells: dict[str, tuple[Sequence[Any], Sequence[str]]] = {
        "method": (result.methods, result.methods),
        "score": (
            [summary.mean for summary in summaries],
            [mean_and_std(s.mean, s.std, metric.digits) for s in summaries],
        ),
        "95 % interval": (
            [summary.low for summary in summaries],
            [interval_text(summary, metric) for summary in summaries],
        ),
        COULD_BE_BEST: (standing, standing),
        "difference": _with_texts(of_pairs("difference"), by_digits),
        "its 95 % interval": (
            low,
            [
                "-" if None in ends else " to ".join(map(by_digits, ends))
                for ends in zip(low, high, strict=True)
            ],
        ),
        "against": ([n or "" for n in baselines], [n or "-" for n in baselines]),
        "p": _with_texts(of_pairs("t_p_holm"), p_value),
        "d": _with_texts(of_pairs("effect_size"), signed),
        "verdict": (_verdicts(result),) * 2,
        "runs": _with_texts([summary.runs for summary in summaries], str),
        "failed": _with_texts([summary.failed for summary in summaries], str),
    }
    if not result.against_baseline:
        del cells["verdict"]
    if result.best_set is None:
        del cells[COULD_BE_BEST]
    if not any(summary.failed for summary in summaries):
        del cells["failed"]
    headings = {
        "score": metric.words,
        "verdict": AGAINST_BACKBONE if has_both_questions(result) else "verdict",
    }
    return {
        name: Column(headings.get(name, name), texts, keys, *_look(name, metric))
        for name, (keys, texts) in cells.items()
    }


def _look(name: str, metric: Metric) -> list[str]:
    """The view that has a column, and what it means."""
    points = f", in {metric.points}" if metric.points else ""
    return [words.format(points=points) for words in _LOOKS.get(name, ())]


def _with_texts(values: list[Any], text_of: Any) -> tuple[list[Any], list[str]]:
    return values, [text_of(value) for value in values]


def result_table(
    result: DatasetResult, notes: Sequence[str] = (), urgent: Sequence[str] = ()
) -> Table:
    """The table of scores, intervals, differences and verdicts.

    Args:
        result: The result of one dataset.
        notes: Sentences to put below the table, before those on failed runs.
        urgent: Those of them that nobody may miss.
    """
    all_columns = result_columns(result)
    shown = {name: all_columns[name] for name in _SHOWN if name in all_columns}
    baselines = sorted({c.baseline for c in shown_comparisons(result).values()})
    headings = {name: column.heading for name, column in shown.items()}
    headings["difference"] = (
        f"against {baselines[0]}" if len(baselines) == 1 else AGAINST_BACKBONE
    )
    if "verdict" in headings:
        headings["verdict"] = "verdict"
    texts = {name: column.texts for name, column in shown.items()}
    texts["method"] = [
        f"{row.method} {ONE_CLASS_MARK}" if row.only_class else row.method
        for row in result.results
    ]
    metric, largest = result.metric, result.largest_class
    footer: tuple[tuple[str, ...], ...] = ()
    if largest is not None:
        rest = ("-",) * (len(shown) - 2)
        footer = ((LARGEST_CLASS, metric.text(largest.mean), *rest),)
    selected = _SELECTION_WORDS[result.selection].format(metric=metric.words)
    on_failures = _notes_on_failures(result)
    return Table(
        f"{result.dataset}: test {metric.in_unit}, {selected}",
        tuple(headings.values()),
        tuple(zip(*texts.values(), strict=True)),
        (
            *_notes_on_statistics(result, bool(baselines)),
            *notes_on_largest_class([result]),
            *notes_on_methods(result.methods),
            *notes,
            *notes_on_one_class(result),
            *on_failures,
        ),
        footer=footer,
        scores=(place := (list(headings).index("score"),)),
        lower=place if metric.better == "lower" else (),
        urgent=(*urgent, *on_failures),
    )


def recipes_table(result: DatasetResult, means: Sequence[Mapping[str, Any]]) -> Table:
    """What residual and norm bring to each method, by what `recipe_means` gives."""
    text, digits = result.metric.text, result.metric.digits
    return Table(
        f"{result.dataset}: what residual and norm bring, test {result.metric.in_unit}",
        ("method", "plain", "default", "gain", "chosen"),
        tuple(
            (method, text(plain), text(default), signed(gain, digits), chosen)
            for method, plain, default, gain, chosen in (row.values() for row in means)
        ),
    )


def shown_comparisons(result: DatasetResult) -> dict[str, PairedComparison]:
    """The comparison that a row of the table gives in numbers, by method.

    It is that with the method's baseline; with the method of the highest mean where no
    method has a baseline.
    """
    return result.against_baseline or result.against_highest


def has_both_questions(result: DatasetResult) -> bool:
    """Whether it was tested which methods are best, and which beat a backbone."""
    return bool(result.best_set and result.against_baseline)


def _verdicts(result: DatasetResult) -> list[str]:
    """What the tests say of each method and its baseline."""
    compared = result.against_baseline
    baselines = {comparison.baseline for comparison in compared.values()}
    return [
        compared[method].verdict
        if method in compared
        else ("baseline" if method in baselines else "-")
        for method in result.methods
    ]


def shown_interval(summary: Summary, metric: Metric) -> tuple[float, float] | None:
    """The interval of a mean score, as tables and figures show it.

    Returns:
        The ends within the metric's bounds; None for fewer than five values.
    """
    if (
        summary.low is None
        or summary.high is None
        or summary.values < _MIN_VALUES_FOR_INTERVAL
    ):
        return None
    lowest, highest = metric.bounds
    return max(summary.low, lowest), min(summary.high, highest)


def interval_text(summary: Summary, metric: Metric) -> str:
    """`78.10 to 80.33`; a dash where there are too few values."""
    interval = shown_interval(summary, metric)
    return "-" if interval is None else " to ".join(map(metric.text, interval))


def indistinct_groups(ranks: RankTable) -> list[tuple[float, float]]:
    """The widest ranges of average ranks that the critical difference covers.

    Each range covers two methods or more; it has no width where their ranks are equal.
    """
    averages = sorted(ranks.average.values())
    groups: list[tuple[float, float]] = []
    covered = 0
    for number, rank in enumerate(averages):
        count = sum(a - rank <= ranks.critical_difference for a in averages)
        if count - number > 1 and count > covered:
            groups.append((rank, averages[count - 1]))
            covered = count
    return groups


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
                "Whether a variant beats its backbone is a second question, with a "
                "correction of its own."
                if has_both_questions(result)
                else "p is corrected for all pairs of methods."
            )
    if result.best_set is not None:
        notes.append(
            f"{COULD_BE_BEST}: no other method is shown to be better (one-sided paired "
            "t-tests, corrected for the number of the others), and the best is one of "
            "these with 95 %. A method left out is matched or beaten by another one; "
            "where methods are equal, each of them may be left out."
        )
    shown = [
        shown_interval(r.summary, result.metric) for r in result.results if r.scores
    ]
    if None in shown:
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
    notes = []
    most = max((len(r.scores) + r.summary.failed for r in result.results), default=0)
    shared = len(result.compared_on)
    if 0 < shared < (result.splits if result.splits > 1 else most):
        notes.append(
            f"Means and tests are over the {shared} {result.pairing} that all tested "
            "methods finished."
        )
    for row in result.results:
        if row.failures:
            shown = "; ".join(row.failures[:_FAILURES_SHOWN])
            more = len(row.failures) - _FAILURES_SHOWN
            failed = row.summary.failed
            runs = len(row.scores) + failed
            notes.append(
                f"{row.method}: {failed} of {runs} runs failed and are not in its mean "
                f"({shown}{f'; and {more} more' if more > 0 else ''})."
            )
    return notes
