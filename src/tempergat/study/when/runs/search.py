"""The setting that an arm's search chooses, on validation nodes alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from tempergat.study.when.plan import WhenPlan
from tempergat.study.when.runs.rows import Case, Row, case_of


def chosen_settings(plan: WhenPlan, rows: Iterable[Row]) -> dict[Case, int]:
    """The number of the best setting, by graph, backbone and arm.

    The best setting has the highest mean validation score over the search's seeds; of
    several, it is the first. A setting with a failed run cannot be chosen.

    Args:
        plan: The plan.
        rows: Rows of the search.

    Returns:
        The settings of searches that are complete.
    """
    settings = len(plan.real.search.changes())
    needed = settings * len(plan.real.search.seeds)
    found: dict[Case, list[Row]] = defaultdict(list)
    for row in rows:
        found[case_of(row.key)].append(row)
    return {
        case: int(np.argmax(_means(of_case, settings)))
        for case, of_case in found.items()
        if len(of_case) == needed
    }


def _means(rows: Iterable[Row], settings: int) -> list[float]:
    scores: list[list[float]] = [[] for _ in range(settings)]
    for row in rows:
        value = -np.inf if row.val is None else row.val
        scores[row.key.setting].append(value)
    return [float(np.mean(values)) for values in scores]
