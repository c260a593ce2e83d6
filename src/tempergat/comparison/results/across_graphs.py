"""What the comparisons on several graphs show together: ranks, tables and words."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tempergat.base import counted, joined, listed, replace_non_finite
from tempergat.comparison.report.formats import Table, mean_and_std, p_value
from tempergat.comparison.report.tables import notes_on_largest_class
from tempergat.comparison.results.result import (
    LARGEST_CLASS,
    DatasetResult,
    MethodResult,
)
from tempergat.stats import ALPHA, RankTable, average_ranks
from tempergat.training import Metric

# A sentence names up to so many methods; of more it names two and counts the others.
_MOST_NAMED = 4
_SIGNS = {"better": " +", "worse": " -"}


@dataclass(frozen=True)
class Record:
    """On which graphs a method is better or worse than its baseline.

    Attributes:
        method: The method.
        baseline: What it is compared with.
        wins: Graphs where it is significantly better.
        ties: Graphs where the difference is within noise, or where there are too few
            runs.
        losses: Graphs where it is significantly worse.
    """

    method: str
    baseline: str
    wins: tuple[str, ...]
    ties: tuple[str, ...]
    losses: tuple[str, ...]


@dataclass(frozen=True)
class AcrossGraphs:
    """Methods on several graphs.

    Attributes:
        results: The result of each graph, by name.
        methods: All methods, in the order of the tables.
        ranks: The methods ranked by their means on each graph; None for fewer than two
            methods, for fewer than two graphs with runs of all methods, and where a
            graph is compared on more than once.
        not_ranked: Graphs that are not in the ranks, each with the methods that have
            no finished run on it.
        records: Wins, ties and losses of each method that has a baseline; none where a
            graph is compared on more than once.
        repeated: Names of graphs that are compared on more than once, with other
            settings or on other devices. They would count more than other graphs.
    """

    results: Mapping[str, DatasetResult]
    methods: tuple[str, ...]
    ranks: RankTable | None
    not_ranked: Mapping[str, tuple[str, ...]]
    records: tuple[Record, ...]
    repeated: tuple[str, ...] = ()

    @property
    def best(self) -> tuple[str, ...]:
        """The methods with the best average rank; several where they are equal."""
        if self.ranks is None:
            return ()
        best = min(self.ranks.average.values())
        return tuple(m for m, rank in self.ranks.average.items() if rank == best)

    def record_of(self, method: str) -> Record | None:
        """The wins, ties and losses of a method; None where it has no baseline."""
        return next((r for r in self.records if r.method == method), None)

    @property
    def worse_than_best(self) -> tuple[str, ...]:
        """Methods whose average rank is significantly worse than the best one.

        None of them unless Friedman's test finds that ranks differ at all; with two
        methods the critical difference alone decides.
        """
        if self.ranks is None:
            return ()
        p = self.ranks.friedman_p
        if len(self.methods) > 2 and (p is None or p >= ALPHA):
            return ()
        best = min(self.ranks.average.values())
        return tuple(
            method
            for method, rank in self.ranks.average.items()
            if rank - best > self.ranks.critical_difference
        )

    @property
    def facts(self) -> dict[str, Any]:
        """Everything but the results as plain JSON values."""
        ranks = self.ranks
        return {
            "metrics": {
                name: result.metric.name for name, result in self.results.items()
            },
            "average_ranks": ranks and ranks.average,
            "ranks": ranks and ranks.ranks,
            "critical_difference": ranks and ranks.critical_difference,
            "friedman_p": ranks and ranks.friedman_p,
            "not_ranked": {name: list(lost) for name, lost in self.not_ranked.items()},
            "records": [replace_non_finite(asdict(record)) for record in self.records],
        }


def across_graphs(
    results: Mapping[str, DatasetResult], repeated: tuple[str, ...] = ()
) -> AcrossGraphs:
    """Rank the methods over graphs, and count wins, ties and losses.

    Args:
        results: The result of each graph, by name. The graphs may have different
            metrics: methods are ranked within a graph.
        repeated: Names of graphs with more than one result. There are no ranks and no
            counts then.
    """
    methods = tuple(
        dict.fromkeys(m for result in results.values() for m in result.methods)
    )
    means = {
        name: {r.method: _merit(r, result.metric) for r in result.results}
        for name, result in results.items()
    }
    not_ranked = {
        name: missing
        for name, row in means.items()
        if (missing := tuple(m for m in methods if row.get(m) is None))
    }
    complete = {
        name: {method: mean for method, mean in row.items() if mean is not None}
        for name, row in means.items()
        if name not in not_ranked
    }
    can_rank = len(methods) > 1 and len(complete) > 1 and not repeated
    return AcrossGraphs(
        results=results,
        methods=methods,
        ranks=average_ranks(complete) if can_rank else None,
        not_ranked=not_ranked,
        records=() if repeated else _records(results),
        repeated=repeated,
    )


def _merit(row: MethodResult, metric: Metric) -> float | None:
    mean = row.summary.mean
    return None if mean is None else float(metric.merit(mean))


def _records(results: Mapping[str, DatasetResult]) -> tuple[Record, ...]:
    graphs: dict[tuple[str, str], dict[str, list[str]]] = {}
    for name, result in results.items():
        for method, one in result.against_baseline.items():
            by_verdict = graphs.setdefault(
                (method, one.baseline), {"better": [], "tie": [], "worse": []}
            )
            verdict = one.verdict if one.verdict in by_verdict else "tie"
            by_verdict[verdict].append(name)
    return tuple(
        Record(*pair, *map(tuple, by_verdict.values()))
        for pair, by_verdict in graphs.items()
    )


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
        tuple(_summary_notes(across)),
    )


def scores_table(across: AcrossGraphs) -> Table:
    """Every method's mean on every graph."""
    headings, columns = [], []
    results = across.results.values()
    for name, result in across.results.items():
        metric = result.metric
        is_usual = metric.name == "accuracy"
        headings.append(name if is_usual else f"{name} ({metric.words})")
        column = {}
        for row in result.results:
            verdict = "" if row.comparison is None else row.comparison.verdict
            score = mean_and_std(row.summary.mean, row.summary.std, metric.digits)
            column[row.method] = score + _SIGNS.get(verdict, "")
        columns.append(column)
    largest = [result.largest_class for result in results]
    means = (
        result.metric.text(one.mean if one else None)
        for result, one in zip(results, largest, strict=True)
    )
    units = dict.fromkeys(result.metric.unit[1] for result in results)
    unit = next(iter(units)) if len(units) == 1 else ""
    return Table(
        f"Test scores in {unit}" if unit else "Test scores",
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
        footer=((LARGEST_CLASS, *means),) if any(largest) else (),
        scores=tuple(range(1, 1 + len(columns))),
        lower=tuple(
            column
            for column, result in enumerate(results, start=1)
            if result.metric.better == "lower"
        ),
    )


def summary_verdict(across: AcrossGraphs) -> tuple[str, str]:
    """What the graphs show together: which method leads, and what a test shows of it.

    Together the two are a sentence; the second may be empty.
    """
    ranks = across.ranks
    graphs = counted(len(across.results), "graph")
    if ranks is None:
        if across.repeated:
            names = joined(across.repeated)
            return f"no ranks over graphs: there are several comparisons on {names}", ""
        return f"the methods are not ranked over {graphs}", ""
    best = across.best
    ranked = counted(len(ranks.datasets), "graph")
    leading = (
        f"{joined(best)} {'has' if len(best) == 1 else 'share'} the best "
        f"average rank of {counted(len(across.methods), 'method')} on {ranked} "
        f"({ranks.average[best[0]]:.2f})"
    )
    worse = across.worse_than_best
    if not worse:
        if len(best) == len(across.methods):
            return leading, ""
        if ranks.too_few_datasets:
            return leading, f", but {ranked} are too few for a test of ranks"
        it = "it" if len(best) == 1 else "them"
        return leading, (
            f", but ranks do not show {it} to be better than any other "
            f"(critical difference {ranks.critical_difference:.2f})"
        )
    are = "is" if len(best) == 1 else "are"
    others = joined(worse) if len(worse) <= _MOST_NAMED else listed(worse, 2)
    return leading, (
        f", and {are} shown to be better than {others} "
        f"(critical difference {ranks.critical_difference:.2f})"
    )


def _summary_notes(across: AcrossGraphs) -> list[str]:
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
            f"{graphs} are too few for this test ({ranks.test}, 5 %): average ranks of "
            f"{counted(len(ranks.average), 'method')} differ by "
            f"{ranks.largest_difference} at most, and a significant difference is "
            f"above {ranks.critical_difference:.2f}"
            if ranks.too_few_datasets
            else f"Average ranks over {graphs} that differ by less than "
            f"{ranks.critical_difference:.2f} do not show which is better "
            f"({ranks.test}, 5 %)"
        )
        best = {result.metric.best for result in across.results.values()}
        first = best.pop() if len(best) == 1 else "best"
        notes.append(f"Rank 1 is the {first} mean on a graph. {tested}{friedman}.")
        notes += [
            f"{name} is not in the ranks: no finished run of {', '.join(missing)}."
            for name, missing in across.not_ranked.items()
        ]
    metrics = {name: result.metric for name, result in across.results.items()}
    if len(set(metrics.values())) > 1:
        words = ", ".join(f"{m.words} on {name}" for name, m in metrics.items())
        notes.append(f"Graphs have different metrics: {words}.")
    if across.records:
        notes.append(
            "Wins and losses are graphs where the method is better or worse than the "
            "one it is compared with, p below 0.05: paired t-test, Holm-corrected "
            "within the graph."
        )
    return notes
