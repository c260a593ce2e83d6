"""Which method a graph needs: measurements, a short paired screening, and advice.

Methods are judged on validation nodes; test nodes play no part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch

from tempergat.data import Dataset
from tempergat.errors import UserError
from tempergat.nn.methods import METHODS
from tempergat.study.measure import Measurements, measure
from tempergat.study.records import Run
from tempergat.study.stats import Comparison, Summary, compare_to_baseline, summarise
from tempergat.study.store import Store
from tempergat.study.sweep import OnProgress, sweep
from tempergat.train import Recipe

SCREENING_EPOCHS = 100
SCREENING_RUNS = 10
SCREENED = tuple(name for name, method in METHODS.items() if method.in_paper)
PLAIN = ("gcn", "gat", "gatv2")
_RESAMPLES = 10_000

Certainty = Literal["shown", "no difference", "too few runs"]


@dataclass(frozen=True)
class Screened:
    """One method in the screening, in percent on validation nodes.

    Attributes:
        against_best: Compared with the method of the highest mean; None for that one.
        best_in: Share of resamplings of the seeds in which its mean is the highest.
    """

    method: str
    summary: Summary
    against_best: Comparison | None
    best_in: float

    @property
    def is_alike(self) -> bool:
        """Whether the runs do not tell it from the best."""
        return self.against_best is None or self.against_best.verdict != "worse"


@dataclass(frozen=True)
class Advice:
    """What to use.

    Attributes:
        pick: The method.
        certainty: `shown` where the pick was told apart from the best plain method
            (gcn, gat, gatv2) or, being that one itself, from all others; `no
            difference` where the best method was not told apart from the best plain
            one, which then is the pick.
        best: The method with the highest mean.
        best_plain: The plain method with the highest mean.
        screened: All methods with a finished run, best first.
        failed: Methods without one.
        luck: Standard error, in percent, of an accuracy on so many validation nodes:
            smaller differences may be this split's luck.
    """

    pick: str
    certainty: Certainty
    best: str
    best_plain: str
    screened: tuple[Screened, ...]
    failed: tuple[str, ...]
    luck: float

    @property
    def alike(self) -> tuple[str, ...]:
        """Methods the runs do not tell from the best, itself included."""
        return tuple(entry.method for entry in self.screened if entry.is_alike)

    @property
    def sentence(self) -> str:
        """What the screening shows, in words; it recommends nothing beyond that."""
        if self.certainty == "too few runs":
            return (
                f"{self.pick} comes first among the plain methods, but so few runs "
                "show nothing; raise --runs"
            )
        if self.certainty == "no difference":
            others = ", ".join(m for m in self.alike if m != self.pick)
            return f"no difference was shown between {self.pick} and {others}"
        if self.pick == self.best_plain:
            return f"{self.pick} is better here than every other method screened"
        others = ", ".join(m for m in self.alike if m != self.pick)
        also = f"; not told apart from it: {others}" if others else ""
        return (
            f"{self.pick} is better here than {self.best_plain}, the best of the "
            f"plain methods{also}"
        )


@dataclass(frozen=True)
class Diagnosis:
    """Everything `diagnose` found."""

    dataset: str
    measurements: Measurements
    advice: Advice
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
    """Measures a graph, screens methods on it and advises.

    Args:
        dataset: The graph, homogeneous.
        recipe: The settings.
        store: Where the screening's runs are kept.
        device: Where to train.
        methods: What to screen; a plain one (gcn, gat, gatv2) among them.
        runs: Seeds per method.
        epochs: Most epochs of a run.
        on_progress: Called after every epoch and every group.

    Raises:
        UserError: Nothing can be trained with these arguments.
    """
    if not set(methods) & set(PLAIN):
        raise UserError(
            f"none of {', '.join(methods)} is plain; screen gcn, gat or gatv2 too, to "
            "have something to be better than"
        )
    configs = [recipe.config_for(method) for method in methods]
    configs = [c.with_changes(epochs=min(epochs, c.epochs)) for c in configs]
    found = sweep(dataset, configs, range(runs), store, device, on_progress)
    labelled = dataset.data.val_mask & (dataset.data.y >= 0)
    return Diagnosis(
        dataset=dataset.name,
        measurements=measure(dataset, configs[0].normalize_features),
        advice=advise(validation_scores(found), int(labelled.sum())),
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


def advise(
    scores: Mapping[str, Mapping[int, float | None]], validation_nodes: int
) -> Advice:
    """What the scores of a screening recommend.

    The best plain method (gcn, gat, gatv2), unless the method with the highest mean is
    told apart from it: temperature and gates are recommended where they are shown to
    help, not where they happen to come first.

    Args:
        scores: Validation scores in percent by method and seed.
        validation_nodes: How many nodes they are over.

    Raises:
        UserError: No method has a finished run.
    """
    finished = {
        method: [score for score in found.values() if score is not None]
        for method, found in scores.items()
    }
    means = {method: float(np.mean(s)) for method, s in finished.items() if s}
    plain = [method for method in means if method in PLAIN]
    if not plain:
        raise UserError(
            "no plain method finished a run of the screening; use a lower learning rate"
        )
    best = max(means, key=means.__getitem__)
    best_plain = max(plain, key=means.__getitem__)
    against_best = {
        c.method: c for c in compare_to_baseline({m: scores[m] for m in means}, best)
    }
    best_in = _best_in(scores, list(means))
    screened = tuple(
        Screened(
            method,
            summarise(
                finished[method], failed=len(scores[method]) - len(finished[method])
            ),
            against_best.get(method),
            best_in[method],
        )
        for method in sorted(means, key=means.__getitem__, reverse=True)
    )
    share = means[best] / 100.0
    return Advice(
        *_decide(screened, best, best_plain),
        best=best,
        best_plain=best_plain,
        screened=screened,
        failed=tuple(method for method in scores if method not in means),
        luck=100.0 * (share * (1 - share) / max(validation_nodes, 1)) ** 0.5,
    )


def _decide(
    screened: Sequence[Screened], best: str, best_plain: str
) -> tuple[str, Certainty]:
    others = [entry for entry in screened if entry.method != best]
    if any(e.against_best is None or e.against_best.t_p is None for e in others):
        return best_plain, "too few runs"
    alike = {entry.method for entry in others if entry.is_alike}
    if best == best_plain:
        return best, "no difference" if alike else "shown"
    if best_plain in alike:
        return best_plain, "no difference"
    return best, "shown"


def _best_in(
    scores: Mapping[str, Mapping[int, float | None]], methods: Sequence[str]
) -> dict[str, float]:
    """How often each method has the highest mean when seeds are drawn again.

    Ties share a resampling; seeds that some method did not finish are left out.
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
    return {**asdict(diagnosis), "sentence": diagnosis.advice.sentence}
