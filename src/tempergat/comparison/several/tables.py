"""The tables and the verdict of several graphs as people read them."""

from collections.abc import Collection

from tempergat.base import counted, joined
from tempergat.comparison.report.formats import Table, mean_and_std, p_value, percent
from tempergat.comparison.report.tables import notes_on_largest_class
from tempergat.comparison.results import LARGEST_CLASS, METRIC_NAMES, DatasetResult
from tempergat.comparison.several.across import AcrossGraphs

_SIGNS = {"better": " +", "worse": " -"}


def summary_table(across: AcrossGraphs) -> Table:
    """Average ranks, wins, ties and losses of every method, best rank first."""
    ranks = across.ranks
    methods = list(across.methods if ranks is None else ranks.average)
    rows: list[tuple[str, ...]] = []
    for method in methods:
        record = across.record_of(method)
        rank = "-" if ranks is None else f"{ranks.average[method]:.2f}"
        if record is None:
            rows.append((method, rank, "-", "-", "-", "-"))
            continue
        counts = (len(part) for part in (record.wins, record.ties, record.losses))
        rows.append((method, rank, record.baseline, *map(str, counts)))
    kind = "comparison" if across.repeated else "graph"
    return Table(
        f"Summary of {counted(len(across.results), kind)}",
        ("method", "average rank", "against", "wins", "ties", "losses"),
        tuple(rows),
        (*_notes_on_ranks(across), *_notes_on_records(across)),
    )


def scores_table(across: AcrossGraphs) -> Table:
    """Every method's mean on every graph."""
    headings, columns = [], []
    results = across.results.values()
    for name, result in across.results.items():
        metric = METRIC_NAMES[result.metric]
        headings.append(name if metric == "accuracy" else f"{name} ({metric})")
        column = {}
        for found in result.results:
            verdict = "" if found.comparison is None else found.comparison.verdict
            score = mean_and_std(found.summary.mean, found.summary.std)
            column[found.method] = score + _SIGNS.get(verdict, "")
        columns.append(column)
    return Table(
        "Test scores in percent",
        ("method", *headings),
        tuple(
            (method, *(column.get(method, "-") for column in columns))
            for method in across.methods
        ),
        (
            "Means ± standard deviation over runs; accuracy where no metric is named. "
            "+ and -: better and worse than the method's baseline on that graph, as in "
            "the graph's own table.",
            *notes_on_largest_class(results),
        ),
        footer=_footer(results),
    )


def _footer(results: Collection[DatasetResult]) -> tuple[tuple[str, ...], ...]:
    found = [result.largest_class for result in results]
    if not any(found):
        return ()
    means = (percent(None if one is None else one.mean) for one in found)
    return ((LARGEST_CLASS, *means),)


def summary_verdict(across: AcrossGraphs) -> str:
    """What the graphs show together. A claim is made only where a test supports it."""
    ranks = across.ranks
    graphs = counted(len(across.results), "graph")
    if ranks is None:
        if across.repeated:
            names = joined(across.repeated)
            return f"no ranks over graphs: there are several comparisons on {names}"
        return f"the methods are not ranked over {graphs}"
    best = across.best
    ranked = counted(len(ranks.datasets), "graph")
    leading = (
        f"{joined(best)} {'has' if len(best) == 1 else 'share'} the best "
        f"average rank of {counted(len(across.methods), 'method')} on {ranked} "
        f"({ranks.average[best[0]]:.2f})"
    )
    apart = across.told_apart
    if not apart:
        if len(best) == len(across.methods):
            return leading
        if ranks.too_few_datasets:
            return f"{leading}, but {ranked} are too few for a test of ranks"
        it = "it" if len(best) == 1 else "them"
        return (
            f"{leading}, but ranks do not show {it} to be better than any other "
            f"(critical difference {ranks.critical_difference:.2f})"
        )
    are = "is" if len(best) == 1 else "are"
    return (
        f"{leading}, and {are} shown to be better than {joined(apart)} "
        f"(critical difference {ranks.critical_difference:.2f})"
    )


def _notes_on_ranks(across: AcrossGraphs) -> list[str]:
    notes = []
    ranks = across.ranks
    if across.repeated:
        notes += [
            f"No average ranks, wins and losses: {name} is compared on more than once, "
            "with other settings or on another device."
            for name in across.repeated
        ]
    elif ranks is None:
        notes.append(
            "No average ranks: they need two methods or more, with finished runs on "
            "two graphs or more."
        )
    else:
        p = p_value(ranks.friedman_p)
        sign = "" if p.startswith("<") else "= "
        friedman = "" if ranks.friedman_p is None else f"; Friedman's test: p {sign}{p}"
        graphs = counted(len(ranks.datasets), "graph")
        tested = (
            f"{graphs} are too few for this test (Nemenyi, 5 %): average ranks of "
            f"{counted(len(ranks.average), 'method')} differ by "
            f"{ranks.largest_difference} at most, and a significant difference is "
            f"above {ranks.critical_difference:.2f}"
            if ranks.too_few_datasets
            else f"Average ranks over {graphs} that differ by less than "
            f"{ranks.critical_difference:.2f} do not show which is better (Nemenyi, "
            "5 %)"
        )
        notes.append(f"Rank 1 is the highest mean on a graph. {tested}{friedman}.")
        notes += [
            f"{name} is not in the ranks: no finished run of {', '.join(missing)}."
            for name, missing in across.not_ranked.items()
        ]
    metrics = {name: found.metric for name, found in across.results.items()}
    if len(set(metrics.values())) > 1:
        words = ", ".join(f"{METRIC_NAMES[m]} on {name}" for name, m in metrics.items())
        notes.append(f"Graphs have different metrics: {words}.")
    return notes


def _notes_on_records(across: AcrossGraphs) -> list[str]:
    if not across.records:
        return []
    return [
        "Wins and losses are graphs where the method is better or worse than the one "
        "it is compared with, p below 0.05: paired t-test, Holm-corrected within the "
        "graph."
    ]
