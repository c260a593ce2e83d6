"""Measure a graph and compare the methods on it in a short screening.

Methods are judged on validation nodes; test nodes play no part. Nothing is recommended:
picking a method from such a screening was not shown to be better than always using one
method, see docs/diagnose.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch

from tempergat.base import UserError
from tempergat.data import Dataset
from tempergat.stats import PairedComparison, Summary, compare_to_baseline, summarise
from tempergat.study.diagnose.measure import Measurements, measure
from tempergat.study.engine import OnProgress, Run, Store, sweep
from tempergat.study.paper import PAPER_METHODS, PLAIN_METHODS
from tempergat.training import Recipe, refuse_typed, settings_on

SCREENING_EPOCHS = 100
SCREENING_RUNS = 10
SCREENED = PAPER_METHODS
_RESAMPLES = 10_000

Finding = Literal["shown", "no difference", "too few runs"]


@dataclass(frozen=True)
class Screened:
    """One method in the screening, in percent on validation nodes.

    Attributes:
        against_best: Comparison with the method of the highest mean; None for that
            method itself.
        highest_share: Share of resamplings of the seeds in which its mean is the
            highest.
    """

    method: str
    summary: Summary
    against_best: PairedComparison | None
    highest_share: float

    @property
    def is_within_noise(self) -> bool:
        """Whether the runs do not show that it is worse than the best method."""
        return self.against_best is None or self.against_best.verdict != "worse"


@dataclass(frozen=True)
class Screening:
    """What the runs of a screening show.

    Attributes:
        best: The method with the highest mean.
        best_plain: The plain method (gcn, gat, gatv2) with the highest mean.
        finding: `shown` where the best method is better than the best plain method
            or, if it is plain itself, better than all others; `no difference` where
            that was not shown.
        screened: All methods with a finished run, best first.
        failed: Methods without a finished run.
        standard_error: Standard error, in percent, of an accuracy measured on that
            number of validation nodes. Smaller differences may be due to the split.
    """

    best: str
    best_plain: str
    finding: Finding
    screened: tuple[Screened, ...]
    failed: tuple[str, ...]
    standard_error: float

    @property
    def within_noise(self) -> tuple[str, ...]:
        """The best method and those not shown to be worse."""
        return tuple(entry.method for entry in self.screened if entry.is_within_noise)

    @property
    def sentence(self) -> str:
        """What the screening shows, in words."""
        others = ", ".join(
            method for method in self.within_noise if method != self.best
        )
        if len(self.screened) == 1:
            return f"only {self.best} finished a run; there is nothing to compare"
        if self.finding == "too few runs":
            return "so few runs show nothing; raise --runs"
        if self.finding == "no difference":
            return (
                f"{self.best} has the highest mean, but no difference was shown "
                f"between it and {others}"
            )
        if self.best == self.best_plain:
            return f"{self.best} is better here than every other method screened"
        also = f"; not shown to be worse: {others}" if others else ""
        return (
            f"{self.best} is better here than {self.best_plain}, the best of the "
            f"plain methods{also}"
        )


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`."""

    dataset: str
    measurements: Measurements
    screening: Screening
    runs: int
    epochs: int


def diagnose(
    dataset: Dataset,
    recipe: Recipe,
    store: Store,
    device: torch.device,
    *,
    methods: Sequence[str] = SCREENED,
    runs: int = SCREENING_RUNS,
    epochs: int = SCREENING_EPOCHS,
    on_progress: OnProgress | None = None,
) -> Diagnosis:
    """Measure a graph and screen methods on it.

    Args:
        dataset: The graph, homogeneous.
        recipe: The settings.
        store: Where the runs of the screening are stored.
        device: Where to train.
        methods: What to screen: two or more methods, at least one of them plain.
        runs: Seeds per method.
        epochs: Maximum number of epochs of a run.
        on_progress: Called after every epoch and every group.

    Raises:
        UserError: The methods are too few or none is plain, or the graph cannot be
            trained.
    """
    if not set(methods) & set(PLAIN_METHODS):
        raise UserError(
            f"none of {', '.join(methods)} is plain; add gcn, gat or gatv2 to compare "
            "with"
        )
    if len(set(methods)) < 2:
        raise UserError(
            f"{methods[0]} alone has nothing to be compared with; give two methods or "
            "more"
        )
    configs = [settings_on(recipe.config_for(m), dataset) for m in methods]
    configs = [c.with_changes(epochs=min(epochs, c.epochs)) for c in configs]
    refuse_typed(dataset, "diagnose")
    found = sweep(dataset, configs, range(runs), store, device, on_progress)
    labelled = dataset.data.val_mask & (dataset.data.y >= 0)
    return Diagnosis(
        dataset=dataset.name,
        measurements=measure(dataset, configs[0]),
        screening=screening_of(validation_scores(found), int(labelled.sum())),
        runs=runs,
        epochs=max(config.epochs for config in configs),
    )


def validation_scores(runs: Sequence[Run]) -> dict[str, dict[int, float | None]]:
    """Validation scores in percent by method and seed; None for failed runs."""
    scores: dict[str, dict[int, float | None]] = {}
    for run in runs:
        score = None
        if run.status == "done":
            score = 100.0 * run.scores[str(run.config["selection"])].val
        scores.setdefault(run.method, {})[run.seed] = score
    return scores


def screening_of(
    scores: Mapping[str, Mapping[int, float | None]], validation_nodes: int
) -> Screening:
    """What the scores of a screening show.

    Args:
        scores: Validation scores in percent by method and seed.
        validation_nodes: How many nodes they are over.

    Raises:
        UserError: No plain method has a finished run.
    """
    finished = {
        method: [score for score in found.values() if score is not None]
        for method, found in scores.items()
    }
    means = {method: float(np.mean(s)) for method, s in finished.items() if s}
    plain = [method for method in means if method in PLAIN_METHODS]
    if not plain:
        raise UserError(
            "no plain method finished a run of the screening; use a lower learning rate"
        )
    best = max(means, key=means.__getitem__)
    best_plain = max(plain, key=means.__getitem__)
    against_best = {
        c.method: c for c in compare_to_baseline({m: scores[m] for m in means}, best)
    }
    highest_share = _highest_share(scores, list(means))
    screened = tuple(
        Screened(
            method,
            summarise(
                finished[method], failed=len(scores[method]) - len(finished[method])
            ),
            against_best.get(method),
            highest_share[method],
        )
        for method in sorted(means, key=means.__getitem__, reverse=True)
    )
    return Screening(
        best=best,
        best_plain=best_plain,
        finding=_finding(screened, best, best_plain),
        screened=screened,
        failed=tuple(method for method in scores if method not in means),
        standard_error=_standard_error(means[best], validation_nodes),
    )


def _standard_error(accuracy: float, nodes: int) -> float:
    """Standard error of an accuracy, both in percent, after Agresti and Coull.

    Two right and two wrong answers are added, so that the error is not zero where all
    of a few nodes are right.
    """
    share = (accuracy / 100.0 * nodes + 2) / (nodes + 4)
    return float(100.0 * (share * (1 - share) / (nodes + 4)) ** 0.5)


def _finding(screened: Sequence[Screened], best: str, best_plain: str) -> Finding:
    compared = {e.method: e.against_best for e in screened if e.against_best}
    if not compared or any(c.t_p is None for c in compared.values()):
        return "too few runs"
    within_noise = {m for m, c in compared.items() if c.verdict != "worse"}
    if best == best_plain:
        return "no difference" if within_noise else "shown"
    return "no difference" if best_plain in within_noise else "shown"


def _highest_share(
    scores: Mapping[str, Mapping[int, float | None]], methods: Sequence[str]
) -> dict[str, float]:
    """How often each method has the highest mean in resamplings of the seeds.

    Methods with equal means share a resampling. Seeds that some method did not finish
    are left out.
    """
    seeds = [
        seed
        for seed in scores[methods[0]]
        if all(scores[method].get(seed) is not None for method in methods)
    ]
    if not seeds:
        return dict.fromkeys(methods, 0.0)
    table = np.array(
        [[scores[m][seed] for seed in seeds] for m in methods], dtype=float
    )
    drawn = np.random.default_rng(0).integers(len(seeds), size=(_RESAMPLES, len(seeds)))
    means = np.round(table[:, drawn].mean(axis=2), 9)
    first = means == means.max(axis=0)
    shares = (first / first.sum(axis=0)).mean(axis=1)
    return dict(zip(methods, shares.tolist(), strict=True))


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain JSON values."""
    return {**asdict(diagnosis), "sentence": diagnosis.screening.sentence}
