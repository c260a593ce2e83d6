"""Every method with a search of its own: who beats its tuned backbone?"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tempergat.base import UserError
from tempergat.study.engine import Run, write_runs
from tempergat.study.tuning.trials import TrialMeans, near_best_tests
from tempergat.study.tuning.variants import TunedVariants, read_variants
from tempergat.study.tuning.variants_section import (
    search_caveat,
    variants_answer,
    variants_section,
)
from tests.support.made_up_runs import run, study

SEEDS = range(200_000, 200_008)
MEANS = {"gcn": 81.0, "gat": 82.0, "gated": 84.0, "temp_only": 82.0, "temp_gated": 75.0}


def found(
    folder: Path,
    *,
    lacking: tuple[str, int] | None = None,
    rival: float = 0.5,
    tests: Mapping[str, float] | None = None,
) -> TunedVariants:
    """Two graphs; each method tried two settings.

    `rival` is the second one's validation score, `tests` the test score of all trials
    of a method.
    """
    plan = {
        "graphs": ["cora", "pubmed"],
        "methods": list(MEANS),
        "base": "the recipe",
        "trials": 2,
        "search_seeds": [100_000],
        "reported_seeds": f"{SEEDS.start} to {SEEDS.stop - 1}",
    }
    runs: list[Run] = []
    for graph in ("cora", "pubmed"):
        for one in study(graph, MEANS, SEEDS):
            if lacking != (one.dataset, one.seed):
                runs.append(replace(one, config=settings(one.method, 0.01)))
        for method in MEANS:
            test = (tests or {}).get(method, 0.8)
            first, other = (
                run(method, 100_000, test, graph, settings(method, rate))
                for rate in (0.01, 0.02)
            )
            score = replace(other.scores["best_val_accuracy"], val=rival)
            scores = {**other.scores, "best_val_accuracy": score}
            runs += [first, replace(other, scores=scores)]
    (folder / "tuned_variants").mkdir(parents=True)
    (folder / "tuned_variants" / "plan.yaml").write_text(yaml.safe_dump(plan))
    write_runs(runs, folder / "tuned_variants" / "runs.csv")
    read = read_variants(folder)
    assert read is not None
    return read


def settings(method: str, learning_rate: float) -> dict[str, Any]:
    return {
        "method": method,
        "learning_rate": learning_rate,
        "norm": None,
        "selection": "best_val_accuracy",
    }


def test_the_answer_names_the_variants_that_beat_their_tuned_backbone(
    tmp_path: Path,
) -> None:
    read = found(tmp_path)
    answer = variants_answer(read)
    assert (
        "in 2 of 6 comparisons on cora and pubmed a variant beats its tuned" in answer
    )
    assert "gated on cora +2.00" in answer
    assert (
        "2 are within noise, and in 2 it is worse (temp_gated on cora -7.00" in answer
    )
    assert "does not hold" in answer
    assert "No run collapses" in answer
    assert (
        "| gated | 0.01 | - | - | - | - | none | 80.00 to 80.00 |"
        in variants_section(read)
    )


def test_the_answer_says_what_the_tests_do_not_cover(tmp_path: Path) -> None:
    here = {"cora": ("gated", 84.0), "pubmed": ("gated", 84.0)}
    earlier = {"cora": ("gat", 90.0), "pubmed": ("gat", 50.0)}
    caveat = search_caveat(found(tmp_path), here, earlier)
    assert "hold for the settings that were found" in caveat
    assert "gat reaches 90.00 on cora (best of all methods searched here" in caveat
    assert "gat reaches 50.00" not in caveat


def test_a_difference_larger_than_that_between_near_best_trials_is_named(
    tmp_path: Path,
) -> None:
    read = found(tmp_path, tests={"gated": 0.9})
    assert (
        "2 of these 4 differences (gated on cora +2.00, gated on pubmed +2.00)"
        in search_caveat(read, {}, {})
    )


def test_the_range_is_that_of_the_five_best_trials_and_of_ties() -> None:
    trials = [TrialMeans(str(i), 90.0 - i, 70.0 + i) for i in range(7)]
    assert near_best_tests(trials) == (70.0, 74.0)
    tied = [*trials[:5], replace(trials[5], val=trials[4].val), trials[6]]
    assert near_best_tests(tied) == (70.0, 75.0)


def test_a_graph_that_lacks_runs_is_named_and_not_judged(tmp_path: Path) -> None:
    read = found(tmp_path, lacking=("pubmed", SEEDS[-1]))
    assert list(read.graphs) == ["cora"]
    assert "gat 7 of 8" in read.missing["pubmed"]
    assert "1 of 3 comparisons" in variants_answer(read)


def test_runs_that_do_not_have_the_best_settings_found_are_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(UserError, match="not run with the best of its settings"):
        found(tmp_path, rival=0.9)


def test_without_runs_there_is_nothing_to_judge(tmp_path: Path) -> None:
    assert read_variants(tmp_path) is None
