"""docs/noise.md: the tests of the plan, on runs whose trends are known."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tempergat.nn import METHODS
from tempergat.study.noise import NoisePlan, load_plan, read_noise_csv
from tempergat.study.noise.export import write_noise_csv
from tempergat.study.noise_findings import (
    CONFIRMATION,
    SECOND_STUDY,
    reproduce_noise,
)
from tempergat.study.noise_findings.claims import Claims, all_claims
from tempergat.study.noise_findings.confirmation import (
    Confirmation,
    confirmation_section,
    read_confirmation,
)
from tempergat.study.noise_findings.first_study import (
    adjusted_values,
    epoch_effects,
    first_gains,
    within_levels,
)
from tempergat.study.noise_findings.sentences import (
    answers,
    generally_rises,
    single_methods_sentence,
)
from tempergat.study.noise_findings.tables import (
    with_complete_seeds,
    without_temperature,
)
from tempergat.study.reproduce import PAGES
from tempergat.training import (
    CLEAN,
    SELECTION_RULES,
    Condition,
    LayerRecord,
    Run,
    Scores,
)

ROOT = Path(__file__).parents[3]
PLAN_FILE = ROOT / "results" / SECOND_STUDY / "plan.yaml"
CONFIRMATION_PLAN = ROOT / "results" / CONFIRMATION / "plan.yaml"
SEEDS = range(100, 106)


@cache
def plan() -> NoisePlan:
    return load_plan(PLAN_FILE)


def record(method: str, condition: Condition, epoch: int, noise: float) -> LayerRecord:
    """T falls with the epoch and rises with sigma; layer 2 has nothing but noise."""
    known = METHODS[method]
    sigma = condition.level if condition.noise == "gaussian" else 0.0
    rho = condition.level if condition.noise == "missing" else 0.0
    first = 1.0 - 0.1 * np.log(epoch) + 0.02 * sigma + noise
    entropy = 0.9 - 0.001 * sigma + 0.01 * noise
    return LayerRecord(
        (first, 1.0 + noise) if known.temperature else (),
        (0.7 - 0.2 * rho + noise, 0.6 + noise) if known.gate else (),
        (0.1, 0.1),
        (entropy - (0.05 if known.temperature else 0.0), 0.95 + 0.01 * noise),
    )


def made_up_runs(dataset: str, gain: float = 1.0) -> list[Run]:
    """Gate-first methods gain under missing coordinates; the rest is chance."""
    random = np.random.default_rng(len(dataset))
    runs = []
    for method in plan().methods:
        for condition in plan().conditions:
            for seed in SEEDS:
                noise = float(random.normal(0.0, 0.01))
                is_first = METHODS[method].gate == "first"
                better = gain if is_first and condition.noise == "missing" else 0.0
                test = 0.7 + better / 100 + float(random.normal(0.0, 0.002))
                # The selected epoch moves with sigma, so that T there does not rise.
                chosen = 20 + round(12 * condition.level)
                epochs = {"best_val_accuracy": chosen, "best_val_loss": chosen + 1}
                epochs["last_epoch"] = 400
                at = {
                    epoch: record(method, condition, epoch, noise)
                    for epoch in (*plan().epochs, *epochs.values())
                }
                runs.append(
                    Run(
                        dataset=dataset,
                        fingerprint="",
                        method=method,
                        seed=seed,
                        config={"method": method, "selection": "best_val_accuracy"}
                        | {"decay_temperature": True, "study": "x"},
                        scores={
                            rule: Scores(epochs[rule], 1.0, 0.7, test)
                            for rule in SELECTION_RULES
                        },
                        condition=None if condition == CLEAN else condition,
                        selected=at[chosen],
                        last=at[400],
                        layers_at_epochs=at,
                        versions={"torch": "2"},
                    )
                )
    return runs


@pytest.fixture(scope="module")
def claims() -> Claims:
    found = {name: made_up_runs(name) for name in plan().datasets}
    return all_claims(found, plan())


def test_a_trend_hidden_by_the_selected_epoch_is_found_at_the_last(
    claims: Claims,
) -> None:
    for cell in claims.temperature.cells:
        assert cell.direction == ("rises" if cell.layer == 1 else "no trend")
    assert not generally_rises(claims.temperature)
    assert claims.temperature.count("rises", "selected") == 0
    assert claims.gate.count("falls") == 3
    assert claims.flatness.count("rises") == claims.flatness.count("falls") == 0
    assert claims.flatness.cells[0].means[0] == pytest.approx(-0.05, abs=0.001)


def test_the_gain_of_gate_first_methods_is_found_and_that_of_no_others(
    claims: Claims,
) -> None:
    first, *others = claims.gains
    assert first.verdict == "gains"
    assert first.summary.mean == pytest.approx(1.0, abs=0.1)
    assert {gain.verdict for gain in others} == {"no gain"}
    assert first.summary.runs == len(SEEDS)
    by_method = {(g.name, g.noise): g.verdict for g in claims.single_methods}
    assert by_method["gated_first_v2", "missing"] == "gains"
    assert by_method["temp_gated", "missing"] == "no gain"


def test_seeds_without_all_their_runs_are_left_out() -> None:
    runs = [
        run
        for run in made_up_runs("cora")
        if (run.seed, run.method, run.condition) != (103, "gat", None)
    ]
    assert {run.seed for run in with_complete_seeds(runs, plan())} == set(SEEDS) - {103}


def test_every_tempered_method_has_a_control_without_temperature() -> None:
    assert without_temperature("temp_only_v2") == "gatv2"
    assert without_temperature("gated_temp") == "gated_first"
    assert without_temperature("temp_gated") == "gated"


def test_the_page_is_made_from_the_rows(tmp_path: Path) -> None:
    folder = tmp_path / "results" / SECOND_STUDY
    folder.mkdir(parents=True)
    (folder / "plan.yaml").write_bytes(PLAN_FILE.read_bytes())
    for name in ("cora", "pubmed"):
        write_noise_csv(folder / f"{name}.csv", made_up_runs(name), plan().epochs)
    found = reproduce_noise(tmp_path / "results", tmp_path / "docs", load_plan())
    page = found.page.read_text(encoding="utf-8")
    assert "in 2 of 4 datasets and layers (cora 1, pubmed 1)" in page.replace("\n", " ")
    assert "Not in these numbers: citeseer (0 of 960 runs)" in page.replace("\n", " ")
    assert (tmp_path / "docs" / "figures" / "noise-trends.svg").is_file()
    assert len(page.splitlines()) < 140


def confirmed(folder: Path, datasets: tuple[str, ...], gain: float) -> Confirmation:
    """The test on runs in which gate-first methods gain under Gaussian noise."""
    asked = load_plan(CONFIRMATION_PLAN)
    (folder / CONFIRMATION).mkdir(parents=True)
    (folder / CONFIRMATION / "plan.yaml").write_bytes(CONFIRMATION_PLAN.read_bytes())
    for name in datasets:
        random = np.random.default_rng(len(name))
        runs = [
            replace(
                run,
                seed=100 + run.seed if copy == 0 else 106 + run.seed,
                scores={
                    "best_val_accuracy": Scores(
                        9,
                        1.0,
                        0.7,
                        0.7
                        + float(random.normal(0.0, 0.002))
                        + (gain / 100 if METHODS[run.method].gate == "first" else 0.0),
                    )
                },
            )
            for run in made_up_runs(name)
            for copy in (0, 1)
            if run.method in asked.methods
            and (run.condition or CLEAN) in asked.conditions
            and (copy == 0 or run.seed < 104)
        ]
        write_noise_csv(folder / CONFIRMATION / f"{name}.csv", runs)
    found = read_confirmation(folder)
    assert found is not None
    return found


def test_a_gain_on_fresh_seeds_is_confirmed_only_with_all_datasets(
    tmp_path: Path,
) -> None:
    every = ("cora", "citeseer", "pubmed")
    assert read_confirmation(tmp_path) is None
    found = confirmed(tmp_path / "all", every, 1.0)
    assert found.gain.summary.mean == pytest.approx(1.0, abs=0.1)
    assert found.sentence.endswith("without a test of it is confirmed.")
    assert "| **all four** | +1.0" in confirmation_section(found)
    assert confirmed(tmp_path / "none", every, 0.0).sentence.endswith("not confirmed.")
    partly = confirmed(tmp_path / "two", every[:2], 1.0)
    assert partly.sentence.endswith("the planned test needs pubmed too.")
    assert "confirmed" not in partly.sentence


def test_adjusting_for_the_epoch_takes_out_its_slope_and_keeps_that_of_levels() -> None:
    random = np.random.default_rng(0)
    epochs = np.exp(random.uniform(2, 5, (10, 4)) + np.arange(4))
    values = 2.0 - 0.3 * np.log(epochs) + 0.1 * np.arange(4)
    slope, correlation = within_levels(values, epochs)
    assert slope == pytest.approx(-0.3)
    assert correlation == pytest.approx(-1.0)
    means = adjusted_values(values, epochs).mean(axis=0)
    assert np.diff(means) == pytest.approx(0.1)


def test_the_first_study_adjusted_for_the_epoch_has_other_rises() -> None:
    runs = read_noise_csv(ROOT / "results" / "noise" / "cora.csv")
    first, second, *_ = epoch_effects(runs, load_plan())
    assert (first.as_measured, first.adjusted, first.variants) == (0, 12, 12)
    assert (second.as_measured, second.adjusted, second.variants) == (12, 4, 12)
    assert first.correlation[1] < -0.85


@pytest.mark.slow
def test_the_first_study_suggested_a_gain_of_gate_first_methods() -> None:
    plan = load_plan()
    runs = {
        name: read_noise_csv(ROOT / "results" / "noise" / f"{name}.csv")
        for name in plan.datasets
    }
    found = first_gains(runs, plan, ["cora"])
    assert found is not None
    gate_first, post_gate, *temperatures = found.all_datasets
    assert gate_first.summary.mean == pytest.approx(0.53, abs=0.005)
    assert gate_first.verdict == "gains"
    assert {gain.verdict for gain in (post_gate, *temperatures)} <= {
        "no gain",
        "not shown",
    }


@pytest.mark.slow
def test_the_page_in_docs_is_that_of_the_committed_runs(tmp_path: Path) -> None:
    written = PAGES["noise"].write(ROOT / "results", tmp_path)
    committed = ROOT / "docs" / "noise.md"
    assert written.path.read_text(encoding="utf-8") == committed.read_text(
        encoding="utf-8"
    )


def test_single_methods_that_differ_are_named_below_the_answer(
    claims: Claims,
) -> None:
    *_, accuracy = answers(claims, None)
    assert "a gate before the attention gains (+0.9" in accuracy
    assert "a temperature alone changes it by less than half a point" in accuracy
    description = single_methods_sentence(claims.single_methods)
    assert "Under missing coordinates these gain: `gated_temp` (+" in description
    assert "lose" not in description
    assert "Gaussian" not in description
