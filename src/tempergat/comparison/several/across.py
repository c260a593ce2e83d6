"""What the comparisons on several graphs show together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tempergat.comparison.results import DatasetResult
from tempergat.stats import ALPHA, RankTable, average_ranks


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
    def told_apart(self) -> tuple[str, ...]:
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
            "metrics": {name: found.metric for name, found in self.results.items()},
            "average_ranks": None if ranks is None else ranks.average,
            "ranks": None if ranks is None else ranks.ranks,
            "critical_difference": (
                None if ranks is None else ranks.critical_difference
            ),
            "friedman_p": None if ranks is None else ranks.friedman_p,
            "not_ranked": {name: list(lost) for name, lost in self.not_ranked.items()},
            "records": [
                {
                    "method": record.method,
                    "baseline": record.baseline,
                    "wins": list(record.wins),
                    "ties": list(record.ties),
                    "losses": list(record.losses),
                }
                for record in self.records
            ],
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
        name: {r.method: r.summary.mean for r in result.results}
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


def _records(results: Mapping[str, DatasetResult]) -> tuple[Record, ...]:
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for name, result in results.items():
        for one in result.results:
            if one.comparison is None:
                continue
            pair = (one.method, one.comparison.baseline)
            record = found.setdefault(pair, {"better": [], "tie": [], "worse": []})
            verdict = one.comparison.verdict
            record[verdict if verdict in record else "tie"].append(name)
    return tuple(
        Record(
            method,
            baseline,
            tuple(record["better"]),
            tuple(record["tie"]),
            tuple(record["worse"]),
        )
        for (method, baseline), record in found.items()
    )
