"""Runs that fail to train: far below the other runs of their arm and graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tempergat.study.when.runs.rows import Case, Row, case_of

# Points of validation score below the median of a run's arm, graph and backbone.
BOUND = 20.0


@dataclass(frozen=True)
class Untrained:
    """The runs of one stage that failed to train.

    Attributes:
        rows: The runs whose validation score is more than `BOUND` points below the
            median of their arm on their graph.
        runs: How many runs with a score each arm has.
        largest_kept: The largest shortfall that does not count; 0 without runs.
        smallest_failed: The smallest one that counts; None where none does.
    """

    rows: tuple[Row, ...]
    runs: dict[str, int]
    largest_kept: float
    smallest_failed: float | None

    def count(self, *arms: str) -> int:
        """How many runs of some arms failed to train."""
        return sum(row.key.arm in arms for row in self.rows)

    def seeds(self, case: Case) -> set[int]:
        """The seeds with which an arm failed to train on a graph."""
        return {row.key.seed for row in self.rows if case_of(row.key) == case}

    @property
    def cases(self) -> list[Case]:
        """The graphs, backbones and arms that have such runs."""
        return sorted({case_of(row.key) for row in self.rows})


def find_untrained(rows: Iterable[Row]) -> Untrained:
    """Finds the runs that failed to train.

    Args:
        rows: The runs of one stage. Those without a score are left out.
    """
    scores: dict[Case, list[tuple[float, Row]]] = defaultdict(list)
    runs: dict[str, int] = defaultdict(int)
    for row in rows:
        if row.val is not None:
            scores[case_of(row.key)].append((row.val, row))
            runs[row.key.arm] += 1
    failed, kept = [], [0.0]
    for of_case in scores.values():
        median = float(np.median([val for val, _ in of_case]))
        for val, row in of_case:
            if median - val > BOUND:
                failed.append((median - val, row))
            else:
                kept.append(median - val)
    return Untrained(
        tuple(row for _, row in failed),
        dict(runs),
        max(kept),
        min((shortfall for shortfall, _ in failed), default=None),
    )
