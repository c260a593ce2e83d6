"""Drawn studies: the best in the set, the size of the set, predictions and denials."""

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy

from studies.best import simulate
from studies.results import read_plan
from tempergat.base import write_into
from tempergat.stats import claim_beats, size_with

GRAPHS = ()
PLAN = read_plan("best")
Row = dict[str, Any]
# So many model confidence sets fit into memory.
_AT_ONCE = 100


class Effort(NamedTuple):
    """How many studies are drawn."""

    studies: int = PLAN["studies"]
    rivals: int = PLAN["studies_of_rivals"]
    predictions: int = PLAN["studies_of_predictions"]
    claims: int = PLAN["studies_of_claims"]


def run(results: Path) -> None:
    """Make all tables in a folder of results."""
    for make in (coverage, procedures, predictions, claims):
        table = pd.DataFrame(make(Effort()))
        write_into(results, f"{make.__name__}.csv", table.to_csv(index=False))


def coverage(effort: Effort) -> list[Row]:
    """How often the best is in the set, and the set's size beside two others."""
    cells = itertools.product(
        PLAN["kinds"], PLAN["truths"], PLAN["methods"], PLAN["seeds"]
    )
    return [_covered(effort, *cell) for cell in cells]


def _covered(effort: Effort, kind: str, truth: str, methods: int, seeds: int) -> Row:
    random = np.random.default_rng([methods, seeds, len(kind), len(truth)])
    ratio = PLAN["test_to_train"] if kind == "overlap" else 0.0
    shape = effort.studies, seeds, methods
    scores = simulate.drawn(random, shape, truth, kind, ratio)
    t = simulate.t_values(scores, ratio)
    found = simulate.best_sets(t, seeds)
    of_holm = simulate.holm_sets(t, scores.mean(axis=1), seeds)
    best = _bests(truth, methods)
    row = {
        "kind": kind,
        "truth": truth,
        "methods": methods,
        "seeds": seeds,
        "best_in_set": found[:, best].mean(axis=0).min(),
        "a_best_left_out": 1.0 - found[:, best].all(axis=1).mean(),
        "size": found.sum(axis=1).mean(),
        "holm_in_set": of_holm[:, best].mean(axis=0).min(),
        "holm_size": of_holm.sum(axis=1).mean(),
    }
    if kind == "alike":
        confident = np.concatenate(
            [
                simulate.confidence_sets(random, scores[start : start + _AT_ONCE])
                for start in range(0, effort.rivals, _AT_ONCE)
            ]
        )
        row["mcs_in_set"] = confident[:, best].mean()
        row["mcs_size"] = confident.sum(axis=1).mean()
    return row


def _bests(truth: str, methods: int) -> list[int]:
    return list(range(methods)) if truth == "equal" else [0]


def procedures(effort: Effort) -> list[Row]:
    """The same of procedures that were not chosen."""
    plan = PLAN["procedures"]
    rows = []
    for truth, methods, seeds in itertools.product(
        ("equal", "graded"), plan["methods"], plan["seeds"]
    ):
        random = np.random.default_rng([methods, seeds, len(truth)])
        shape = effort.rivals, seeds, methods
        scores = simulate.drawn(random, shape, truth, "alike", 0.0)
        sets = {
            "bonferroni": simulate.best_sets(simulate.t_values(scores), seeds),
            "largest_t": simulate.largest_t_sets(random, scores),
            "sign_flips": simulate.flipped_sets(random, scores),
        }
        row: Row = {"truth": truth, "methods": methods, "seeds": seeds}
        for name, found in sets.items():
            # Equal methods have one coverage.
            row[f"{name}_in_set"] = found[:, _bests(truth, methods)].mean()
            row[f"{name}_size"] = found.sum(axis=1).mean()
        rows.append(row)
    return rows


def predictions(effort: Effort) -> list[Row]:
    """What `size_with` says of more seeds, beside the set of those seeds."""
    plan = PLAN["predictions"]
    rows = []
    for truth, methods, seeds, wanted in itertools.product(
        PLAN["truths"], plan["methods"], plan["seeds"], plan["wanted"]
    ):
        random = np.random.default_rng([methods, seeds, wanted, len(truth)])
        shape = effort.predictions, wanted, methods
        scores = simulate.drawn(random, shape, truth, "alike", 0.0)
        then = simulate.best_sets(simulate.t_values(scores), wanted).sum(axis=1)
        said = np.array([_said(table[:seeds], wanted) for table in scores])
        now = simulate.best_sets(simulate.t_values(scores[:, :seeds]), seeds)
        rows.append(
            {
                "truth": truth,
                "methods": methods,
                "seeds": seeds,
                "wanted": wanted,
                "size_now": now.sum(axis=1).mean(),
                "size_said": said.mean(),
                "size_then": then.mean(),
                "within_two": (np.abs(np.round(said) - then) <= 2).mean(),
            }
        )
    return rows


def _said(table: np.ndarray, pairs: int) -> float:
    size = size_with(_by_method(table), pairs)
    assert size is not None
    return size


def _by_method(table: np.ndarray) -> dict[str, dict[int, float | None]]:
    return {
        f"m{m}": dict(enumerate(column)) for m, column in enumerate(table.T.tolist())
    }


def claims(effort: Effort) -> list[Row]:
    """How often a claim denies a gain of a point or more that is there.

    A study has a baseline that is guessing, another one, and three methods, one of
    which truly gains, as much over both. A score is a share of test nodes.
    """
    plan = PLAN["claims"]
    gain, rows = plan["gain"], []
    for nodes, seeds in itertools.product(plan["test_nodes"], plan["seeds"]):
        random = np.random.default_rng([nodes, seeds])
        words = [_words(random, gain, nodes, seeds) for _ in range(effort.claims)]
        rows.append(
            {
                "test_nodes": nodes,
                "seeds": seeds,
                "denied": np.mean(["at most a point" in w for w in words]),
                "shown": np.mean(["shown" in w for w in words]),
            }
        )
    return rows


def _words(
    random: np.random.Generator, gain: float, nodes: int, seeds: int
) -> set[str]:
    """What the two claims about one drawn study say."""
    # How hard each node is, the same for all seeds; a method is right by a threshold.
    hard = random.normal(0.0, 1.0, nodes)
    levels = np.zeros(4)
    levels[3] = _level_of(hard, gain)
    of_seed = random.normal(0.0, 0.1, (seeds, 1, 1))
    luck = random.normal(0.0, 0.5, (seeds, 4, nodes))
    right = levels[:, None] + of_seed + luck > hard
    table = 100.0 * right.mean(axis=2)
    guess = 100.0 * float(_share_right(hard, 0.0))
    scores = _by_method(table) | {"guess": dict.fromkeys(range(seeds), guess)}
    step = 100.0 / nodes
    without = {name: of for name, of in scores.items() if name != "guess"}
    return {
        claim_beats(scores, "guess", step=step, claims=2).word,
        claim_beats(without, "m0", step=step, claims=2).word,
    }


def _share_right(hard: np.ndarray, level: float) -> float:
    """The true share of nodes that a method is right about."""
    return float(scipy.special.ndtr((level - hard) / np.hypot(0.5, 0.1)).mean())


def _level_of(hard: np.ndarray, gain: float) -> float:
    """The level of a method that is right about so many points more than level 0."""
    wanted = _share_right(hard, 0.0) + gain / 100.0
    if wanted >= 1.0:
        return 10.0
    return float(
        scipy.optimize.brentq(lambda level: _share_right(hard, level) - wanted, 0, 10)
    )
