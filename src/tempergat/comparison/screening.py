"""Measure a graph and compare the methods on it in a short screening.

Methods are judged on validation nodes; test nodes play no part. Nothing is recommended:
picking a method from such a screening was not shown to be better than always using one
method, see docs/diagnose.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from tempergat.base import UserError
from tempergat.comparison.measure import Measurements, measure
from tempergat.comparison.paper import PAPER_METHODS
from tempergat.comparison.report.answers import which_is_best
from tempergat.comparison.report.formats import mean_and_std
from tempergat.comparison.report.sentences import denial, on_untested
from tempergat.comparison.results.result import simplest_of
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps.state import OnProgress
from tempergat.comparison.sweeps.sweep import sweep
from tempergat.data import Dataset
from tempergat.stats import (
    BestSet,
    Claim,
    PairedComparison,
    Summary,
    best_set,
    claim_beats,
    compare_all,
    shared_pairs,
    summarise,
)
from tempergat.training import Recipe, Run, refuse_typed, settings_on

SCREENING_EPOCHS = 100
SCREENING_RUNS = 10
SCREENED = (*PAPER_METHODS, "mlp")
_RESAMPLES = 10_000


@dataclass(frozen=True)
class Screened:
    """One method in the screening, in percent on validation nodes.

    Attributes:
        against_best: Comparison with the method of the highest mean, corrected for
            tests of all pairs of methods; None for that method itself.
        highest_share: Share of resamplings of the seeds in which its mean is the
            highest.
    """

    method: str
    summary: Summary
    against_best: PairedComparison | None
    highest_share: float


@dataclass(frozen=True)
class Screening:
    """What the runs of a screening show.

    Attributes:
        best: The method with the highest mean, whether or not a test shows that it
            leads; one with two runs or more, where two methods have so many.
        best_set: The methods that could be the best; None where no two methods have
            two runs.
        simplest: The method of the best set with the fewest parameters; None where
            that is not known.
        beats_mlp: Whether some method is shown to be better than `mlp`; None where
            that was not tested.
        screened: All methods with a finished run, best first, those with too few runs
            for a test last.
        failed: Methods without a finished run.
        standard_error: Standard error, in percent, of an accuracy measured on that
            number of validation nodes. Smaller differences may be due to the split.
        sentence: What the screening shows, in words.
    """

    best: str
    best_set: BestSet | None
    simplest: str | None
    beats_mlp: Claim | None
    screened: tuple[Screened, ...]
    failed: tuple[str, ...]
    standard_error: float
    sentence: str


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`."""

    dataset: str
    measurements: Measurements
    screening: Screening
    runs: int
    epochs: int


def diagnose_graph(
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
        methods: What to screen: two or more methods.
        runs: Seeds per method.
        epochs: Maximum number of epochs of a run.
        on_progress: Called after every epoch and every group.

    Raises:
        UserError: There is one method only, or the graph cannot be trained.
    """
    if len(set(methods)) < 2:
        raise UserError(
            f"{methods[0]} alone has nothing to be compared with; give two methods or "
            "more"
        )
    configs = [settings_on(recipe.config_for(m), dataset) for m in methods]
    configs = [c.with_changes(epochs=min(epochs, c.epochs)) for c in configs]
    refuse_typed(dataset, "diagnose")
    trained = sweep(dataset, configs, range(runs), store, device, on_progress)
    parameters = {run.method: run.parameter_count for run in trained}
    scores = validation_scores(trained)
    return Diagnosis(
        dataset=dataset.name,
        measurements=measure(dataset, configs[0]),
        screening=screening_of(scores, dataset.count("val"), parameters),
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
    scores: Mapping[str, Mapping[int, float | None]],
    validation_nodes: int,
    parameters: Mapping[str, int | None] | None = None,
) -> Screening:
    """What the scores of a screening show.

    Args:
        scores: Validation scores in percent by method and seed.
        validation_nodes: How many nodes they are over.
        parameters: How many parameters each method trains, where known.

    Raises:
        UserError: No run finished.
    """
    finished = {
        method: [score for score in by_seed.values() if score is not None]
        for method, by_seed in scores.items()
    }
    means = {method: float(np.mean(s)) for method, s in finished.items() if s}
    if not means:
        raise UserError("no run of the screening finished; use a lower learning rate")
    used = shared_pairs(scores)
    rest = sorted((m for m in means if m not in used), key=lambda m: -means[m])
    in_order = {**used, **{m: {} if used else scores[m] for m in rest}}
    best = next(iter(in_order))
    step = 100.0 / validation_nodes
    pairs = compare_all(in_order, step=step)
    against_best = {c.method: c for c in pairs if c.baseline == best}
    highest_share = _highest_share(scores, list(in_order))
    screened = tuple(
        Screened(
            method,
            summarise(
                [s for s in (used or scores)[method].values() if s is not None]
                if method in (used or scores)
                else finished[method],
                len(scores[method]) - len(finished[method]),
            ),
            against_best.get(method),
            highest_share[method],
        )
        for method in in_order
    )
    beats_mlp = claim_beats(used, "mlp", step=step) if "mlp" in used else None
    found = best_set(scores, step=step)
    members = () if found is None else found.members
    simplest = simplest_of({m: (parameters or {}).get(m) for m in members})
    return Screening(
        best=best,
        best_set=found,
        simplest=simplest,
        beats_mlp=beats_mlp,
        screened=screened,
        failed=tuple(method for method in scores if method not in means),
        standard_error=_standard_error(means[best], validation_nodes),
        sentence=_sentence(screened, found, simplest, beats_mlp),
    )


def _sentence(
    screened: Sequence[Screened],
    found: BestSet | None,
    simplest: str | None,
    beats_mlp: Claim | None,
) -> str:
    best = screened[0]
    if len(screened) == 1:
        return f"Only {best.method} finished a run; there is nothing to compare."
    before = denial(beats_mlp, "seeds", "mlp", "the edges") + on_untested(found)
    if found is None:
        score = mean_and_std(best.summary.mean, best.summary.std)
        last = (
            f"Too few runs to compare methods; {best.method} scores highest ({score})."
        )
    else:
        last = str(which_is_best(found, simplest, "on the validation nodes"))
    return " ".join([*before, last])


def _standard_error(accuracy: float, nodes: int) -> float:
    """Standard error of an accuracy, both in percent, after Agresti and Coull.

    Two right and two wrong answers are added, so that the error is not zero where all
    of a few nodes are right.
    """
    share = (accuracy / 100.0 * nodes + 2) / (nodes + 4)
    return float(100.0 * (share * (1 - share) / (nodes + 4)) ** 0.5)


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


def diagnosis_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain JSON values."""
    facts = asdict(diagnosis)
    return {**facts, "sentence": facts["screening"].pop("sentence")}
