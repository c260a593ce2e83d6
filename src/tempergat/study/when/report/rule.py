"""The plan's rule for choosing an arm, judged on real graphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tempergat.stats import ALPHA
from tempergat.study.when.plan import WhenPlan
from tempergat.study.when.report.analysis import Measured, across_p, is_equivalent


@dataclass(frozen=True)
class RuleTest:
    """The plan's rule against always a residual, over families of real graphs.

    Attributes:
        families: How many families.
        mean: Mean difference in points.
        p: p of Wilcoxon's test; None for fewer than two families.
        is_equivalent: Whether two one-sided tests show it to be within the plan's
            bound of 0.
    """

    families: int
    mean: float
    p: float | None
    is_equivalent: bool

    @property
    def is_supported(self) -> bool:
        """Whether the rule is shown to be better."""
        return self.mean > 0.0 and self.p is not None and self.p < ALPHA


def rule_test(plan: WhenPlan, graphs: Sequence[Measured]) -> RuleTest | None:
    """Judges the plan's rule; None without graphs.

    Args:
        plan: The plan.
        graphs: Real graphs of gatv2.
    """
    homophily = {graph.name: graph.adjusted_homophily for graph in plan.real.graphs}
    differences: dict[str, list[float]] = defaultdict(list)
    for graph in graphs:
        is_below = homophily[graph.graph] < plan.rule.threshold
        arm = plan.rule.below if is_below else plan.rule.otherwise
        differences[graph.family].append(graph.mean(arm) - graph.mean("residual"))
    values = [float(np.mean(members)) for members in differences.values()]
    if not values:
        return None
    return RuleTest(
        len(values),
        float(np.mean(values)),
        across_p(values),
        is_equivalent(values, plan.bounds.equivalence),
    )
