"""The noise study: plan, noise, sharpness, training that goes on, trends, page."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from torch_geometric.data import HeteroData
from typer.testing import CliRunner

from tempergat.base.errors import UserError
from tempergat.cli.application import app
from tempergat.data import Dataset, csbm
from tempergat.ops.graph import Graph
from tempergat.study.engine import Progress
from tempergat.study.noise.analysis import analyse, as_json, end_of
from tempergat.study.noise.export import (
    read_noise_csv,
    study_of,
    write_noise_csv,
)
from tempergat.study.noise.features import NoisyFeatures, noisy
from tempergat.study.noise.moment_columns import layer_values
from tempergat.study.noise.page import page_text, write_page
from tempergat.study.noise.plan import NoisePlan, load_plan
from tempergat.study.noise.runs import run_noise
from tempergat.study.noise.sharpness import group_sharpness, sharpness_of
from tempergat.study.noise.trends import series_of, trends_of
from tempergat.study.noise.variants import decays_temperature, variant_of
from tempergat.training import (
    CLEAN,
    Condition,
    LayerRecord,
    Recipe,
    Run,
    Scores,
    load_recipe,
    recipe_names,
    train_group,
)
from tempergat.training.seeds import SeedGroup
from tempergat.training.task import task_of

CPU = torch.device("cpu")


def small_plan(**changes: object) -> NoisePlan:
    values: dict[str, object] = {
        "datasets": ["csbm"],
        "seeds": 2,
        "methods": ["gcn", "gat", "temp_gated_v2"],
        "gaussian": [0, 1, 3],
        "missing": [0, 0.4, 0.8],
        "tau": [1, 3],
        "decay_temperature": [True, False],
        "matmul_precision": "high",
    }
    return NoisePlan.model_validate({**values, **changes})


def quick_recipe() -> Recipe:
    recipe = load_recipe("demo")
    return recipe.model_copy(
        update={
            "attention": recipe.attention.model_copy(update={"epochs": 3}),
            "gcn": recipe.gcn.model_copy(update={"epochs": 3}),
        }
    )


def small_graph() -> Dataset:
    return csbm(n=60, a=6, b=2, d=8, seed=1)


def made_up_runs(
    temperature: float = 0.0,
    gate: float = 0.0,
    entropy: float = 0.0,
    plan: NoisePlan | None = None,
) -> list[Run]:
    """Runs whose learned values change by so much per level, plus noise of the seed."""
    plan = plan or small_plan(seeds=10)
    draw = np.random.default_rng(0)
    runs = []
    for config in plan.configs(quick_recipe()):
        tempered, gated = "temp" in config.method, "gated" in config.method
        for condition in plan.conditions:
            levels = plan.gaussian if condition.noise != "missing" else plan.missing
            step = levels.index(condition.level)
            for seed in range(plan.seeds):
                jitter = 0.001 * draw.standard_normal(3)
                attends = config.method != "gcn"
                learned = LayerRecord(
                    temperatures=(1 + temperature * step + jitter[1],) * 2
                    if tempered
                    else (),
                    gate_means=(0.5 + gate * step + jitter[2],) * 2 if gated else (),
                    spread=(0.5, 0.5) if attends else (),
                    entropy=(0.9 + entropy * step + jitter[0],) * 2 if attends else (),
                )
                runs.append(
                    Run(
                        dataset="csbm",
                        fingerprint="made up",
                        method=config.method,
                        seed=seed,
                        config=config.model_dump(mode="json"),
                        scores={
                            config.selection: Scores(2, 1.0, 0.8, 0.8 - 0.01 * step)
                        },
                        condition=None if condition == CLEAN else condition,
                        selected=learned,
                        versions={"torch": "2"},
                    )
                )
    return runs


def key(run: Run) -> tuple[str, Condition | None, int, str]:
    """What no two runs of a study share."""
    return (variant_of(run), run.condition, run.seed, study_of(run))


def test_the_shipped_plan_has_ten_seeds_and_six_levels_from_zero() -> None:
    plan = load_plan()
    assert plan.datasets == ("cora", "citeseer", "pubmed")
    assert plan.seeds >= 10
    assert len(plan.gaussian) >= 6
    assert len(plan.missing) >= 6
    assert plan.gaussian[0] == plan.missing[0] == 0
    assert 1 in plan.tau
    assert max(plan.tau) > 1
    assert set(plan.decay_temperature) == {True, False}
    assert len(set(plan.conditions)) == len(plan.conditions) == 16


def test_plans_are_not_offered_as_settings_of_methods() -> None:
    assert not any("noise" in name for name in recipe_names())


def test_a_method_without_temperature_is_trained_once_whatever_is_decayed() -> None:
    configs = small_plan().configs(quick_recipe())
    assert [(c.method, c.decay_temperature) for c in configs] == [
        ("gcn", True),
        ("gat", False),
        ("temp_gated_v2", True),
        ("temp_gated_v2", False),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gaussian": [0.5, 1, 2]}, "gaussian: give three levels or more"),
        ({"missing": [0, 0.5, 0.4]}, "missing: give three levels or more"),
        ({"methods": ["gta"]}, "unknown method 'gta'"),
        ({"epochs": 3}, "epochs"),
    ],
)
def test_a_plan_that_is_wrong_is_refused_in_words(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    plan = small_plan().model_dump(mode="json")
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump({**plan, **change}))
    with pytest.raises(UserError, match=message):
        load_plan(tmp_path / "plan.yaml")


def test_a_plan_that_says_something_twice_is_refused(tmp_path: Path) -> None:
    text = yaml.safe_dump(small_plan().model_dump(mode="json"))
    (tmp_path / "plan.yaml").write_text(f"{text}seeds: 3\n")
    with pytest.raises(UserError, match="seeds occurs twice"):
        load_plan(tmp_path / "plan.yaml")


def test_noise_is_in_units_of_the_features_root_mean_square() -> None:
    clean = torch.rand(400, 50) * 0.01
    unit = float(clean.square().mean().sqrt())
    added = noisy(clean, Condition("gaussian", 2.0), unit, seed=0) - clean
    assert float(added.std()) == pytest.approx(2 * unit, rel=0.03)
    changed = noisy(clean, Condition("missing", 0.3, 3.0), unit, seed=0)
    lost = changed != clean
    assert float(lost.float().mean()) == pytest.approx(0.3, abs=0.01)
    assert float(changed[lost].std()) == pytest.approx(3 * unit, rel=0.05)


def test_every_seed_has_noise_of_its_own_and_levels_of_a_seed_share_it() -> None:
    clean = torch.ones(30, 8)
    conditions = (CLEAN, Condition("gaussian", 1.0), Condition("gaussian", 2.0))
    features = NoisyFeatures(clean, CPU)
    values = features.of(conditions, [3, 4])
    assert torch.equal(values[:, 0], clean.expand(2, -1, -1))
    assert not torch.isclose(values[0, 1], values[1, 1]).any()
    torch.testing.assert_close(values[:, 2] - clean, 2 * (values[:, 1] - clean))
    assert torch.equal(features.of(conditions[2:], [3, 4]), values[:, 2:])
    assert torch.equal(features.of(conditions, [4]), values[1:])


def test_uniform_attention_has_entropy_one_and_no_spread() -> None:
    graph = Graph(torch.tensor([[0, 1, 2, 0], [1, 2, 1, 2]]), 3).with_self_loops()
    degree = torch.tensor([1.0, 3.0, 3.0])
    weights = (1 / degree)[graph.dst.long()].unsqueeze(-1).repeat(1, 2)
    spread, entropy = sharpness_of(graph, weights)
    assert float(spread) == pytest.approx(0.0, abs=1e-6)
    assert float(entropy) == pytest.approx(1.0)


def test_sharpness_follows_its_definition_target_by_target() -> None:
    graph = Graph(torch.tensor([[0, 1, 2, 0], [1, 2, 1, 2]]), 3).with_self_loops()
    logits = torch.randn(graph.edge_index.size(1), 1)
    spreads, entropies, weights = [], [], torch.ones_like(logits)
    for target in range(3):
        edges = graph.dst == target
        weights[edges] = logits[edges].softmax(0)
        if edges.sum() > 1:
            spreads.append(logits[edges].std(correction=0))
            entropy = -(weights[edges] * weights[edges].log()).sum()
            entropies.append(entropy / edges.sum().log())
    spread, entropy = sharpness_of(graph, weights)
    torch.testing.assert_close(spread, torch.stack(spreads).mean())
    torch.testing.assert_close(entropy, torch.stack(entropies).mean())


@pytest.mark.parametrize("method", ["temp_only", "temp_only_v2"])
def test_temperature_and_attention_vector_scaled_alike_change_no_sharpness(
    method: str,
) -> None:
    graph, config = small_graph(), quick_recipe().config_for(method)
    group = SeedGroup(task_of(graph, config, CPU), config, [0, 1])
    state = {**group.parameters}
    before = group_sharpness(group, state)
    assert before.entropy.shape == (2, 2)
    colder = {**state, "convs.0.theta": torch.full((2,), -1.0)}
    assert (group_sharpness(group, colder).spread[:, 0] > before.spread[:, 0]).all()
    factor = torch.nn.functional.softplus(torch.tensor(-1.0))
    both = {
        name: value * factor if name.startswith("convs.0.att") else value
        for name, value in colder.items()
    }
    after = group_sharpness(group, both)
    torch.testing.assert_close(after.spread, before.spread, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(after.entropy, before.entropy, rtol=1e-4, atol=1e-5)


def test_every_run_of_the_plan_becomes_one_row_that_reads_back(tmp_path: Path) -> None:
    plan, path = small_plan(), tmp_path / "csbm.csv"
    runs = run_noise(small_graph(), quick_recipe(), plan, path, CPU)
    assert len(runs) == 4 * 7 * 2
    read = {key(run): run for run in read_noise_csv(path)}
    assert len(read) == len(runs)
    for run in runs:
        found = read[key(run)]
        assert found.selected_epoch == run.selected_epoch
        assert found.selected_scores is not None
        assert run.selected_scores is not None
        assert vars(found.selected_scores) == pytest.approx(vars(run.selected_scores))
        for name, values in vars(run.selected).items():
            assert getattr(found.selected, name) == pytest.approx(values)
        tempered = run.method == "temp_gated_v2"
        assert bool(run.selected.temperatures) == tempered
        assert bool(run.selected.gate_means) == tempered
        assert bool(run.selected.entropy) == (run.method != "gcn")


@pytest.mark.parametrize("normalize", [False, True])
def test_runs_without_noise_are_those_of_plain_training(
    tmp_path: Path, normalize: bool
) -> None:
    graph, recipe = small_graph(), quick_recipe()
    graph.data.x = graph.data.x.abs()
    changed = recipe.attention.model_copy(update={"normalize_features": normalize})
    recipe = recipe.model_copy(update={"attention": changed})
    plan = small_plan(methods=["temp_gated_v2"], decay_temperature=[True])
    runs = run_noise(graph, recipe, plan, tmp_path / "csbm.csv", CPU)
    config = recipe.config_for("temp_gated_v2").with_changes(decay_temperature=True)
    for result in train_group(graph, config, [0, 1], CPU):
        run = next(r for r in runs if r.condition is None and r.seed == result.seed)
        assert run.selected_scores == result.scores[config.selection]
        gates = result.selected.gate_means
        assert run.selected.gate_means == pytest.approx(gates)


def test_a_stopped_study_goes_on_and_a_finished_one_trains_nothing(
    tmp_path: Path,
) -> None:
    graph, recipe, plan = small_graph(), quick_recipe(), small_plan()
    path = tmp_path / "csbm.csv"

    def stop(progress: Progress) -> None:
        if progress.runs_done == 28:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_noise(graph, recipe, plan, path, CPU, stop)
    lines = path.read_text().splitlines()
    assert len(read_noise_csv(path)) == len(lines) - 1 == 28
    assert len(run_noise(graph, recipe, plan, path, CPU)) == 56
    assert set(lines) <= set(path.read_text().splitlines())
    seen: list[Progress] = []
    run_noise(graph, recipe, plan, path, CPU, seen.append)
    assert seen == []


@pytest.mark.parametrize("most", [1, 5])
def test_runs_that_do_not_fit_together_are_trained_in_several_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    graph, recipe = small_graph(), quick_recipe()
    plan = small_plan(methods=["gat"])
    whole = run_noise(graph, recipe, plan, tmp_path / "whole" / "csbm.csv", CPU)
    monkeypatch.setattr(
        "tempergat.study.engine.sweeps.agenda.group_size", lambda *_, **__: most
    )
    parts = run_noise(graph, recipe, plan, tmp_path / "parts" / "csbm.csv", CPU)
    expected = {key(run): run for run in whole}
    assert {key(run) for run in parts} == expected.keys()
    for run in parts:
        assert run.scores == expected[key(run)].scores
        assert run.selected.entropy == pytest.approx(
            expected[key(run)].selected.entropy, rel=1e-4
        )


def test_runs_that_run_out_of_memory_together_are_trained_by_halves(
    tmp_path: Path,
) -> None:
    graph, recipe = small_graph(), quick_recipe()
    plan = small_plan(methods=["gat"])
    whole = run_noise(graph, recipe, plan, tmp_path / "whole" / "csbm.csv", CPU)
    failures = iter(range(2))

    def run_out_twice(progress: Progress) -> None:
        if progress.epoch == 1 and next(failures, None) is not None:
            raise torch.OutOfMemoryError("no memory is left")

    path = tmp_path / "halves" / "csbm.csv"
    halves = run_noise(graph, recipe, plan, path, CPU, run_out_twice)
    assert next(failures, None) is None
    expected = {key(run): run.scores for run in whole}
    assert {key(run): run.scores for run in halves} == expected


def test_a_file_of_other_settings_is_not_mixed_with_these(tmp_path: Path) -> None:
    path = tmp_path / "csbm.csv"
    write_noise_csv(path, made_up_runs()[:3])
    with pytest.raises(UserError, match="holds gcn with other settings or data"):
        run_noise(small_graph(), quick_recipe(), small_plan(), path, CPU)


def test_a_file_that_is_no_table_of_runs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "csbm.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="is not a table of noise runs"):
        read_noise_csv(tmp_path / "csbm.csv")


@pytest.mark.parametrize(
    ("slope", "direction"), [(0.1, "rises"), (-0.1, "falls"), (0.0, "no trend")]
)
def test_a_trend_is_found_where_there_is_one(slope: float, direction: str) -> None:
    runs = made_up_runs(temperature=slope)
    series = series_of(runs, "gaussian", None, "temperature", lambda m: "temp" in m)
    assert len(series) == 4
    for trend in trends_of(series):
        assert trend.direction == direction
        assert trend.change.mean == pytest.approx(2 * slope, abs=0.002)


def test_a_seed_that_failed_at_one_level_is_left_out_and_counted() -> None:
    runs = made_up_runs(temperature=0.1)
    worst = Condition("gaussian", 3.0)
    runs = [
        replace(
            run,
            status="failed",
            scores={},
            selected=LayerRecord(),
            reason="the loss was nan",
        )
        if (run.seed, run.condition) == (4, worst)
        else run
        for run in runs
    ]
    series = series_of(runs, "gaussian", None, "temperature", lambda m: "temp" in m)
    assert {(len(s.values), s.lost_seeds) for s in series} == {(9, 1)}


def test_the_page_says_where_t_rises_and_attention_does_not_follow(
    tmp_path: Path,
) -> None:
    plan = small_plan(seeds=10)
    runs = made_up_runs(temperature=0.1, gate=0.05)
    write_noise_csv(tmp_path / "results" / "csbm.csv", runs)
    (found,) = write_page(plan, tmp_path / "results", tmp_path / "docs")
    assert found.is_complete
    page = (tmp_path / "docs" / "noise.md").read_text()
    assert (
        "| csbm | 1 | T rises with sigma | selected | holds | 2 / 0 / 0 | 2 / 0 / 0 | "
        "neither shown in 2 |" in page
    )
    assert (
        "| gate falls with rho, tau = 3 | selected | does not hold | 2 / 0 / 0 |"
        in page
    )
    assert "- layer 1: temp_gated_v2; temp_gated_v2, theta undecayed.\n" in page
    assert "Not run: ogbn-arxiv;" in page
    prose = [line for line in page.split("\n") if not line.startswith(("|", "!"))]
    assert max(map(len, prose)) <= 88
    for name in ("temperature", "gate", "sharpness", "accuracy"):
        for suffix in ("svg", "png"):
            file = tmp_path / "docs" / "figures" / f"noise-csbm-{name}.{suffix}"
            assert file.stat().st_size > 1000
            assert suffix == "png" or f"figures/{file.name}" in page


def test_the_page_reports_t_at_the_last_epoch_beside_the_selected_one() -> None:
    # At the selected epoch T is the same at all levels; at the last one it rises.
    runs = []
    for run in made_up_runs():
        level = (run.condition or CLEAN).level
        lifted = tuple(t + 0.1 * level for t in run.selected.temperatures)
        last = replace(run.selected, temperatures=lifted)
        (scores,) = run.scores.values()
        runs.append(
            replace(
                run,
                scores={**run.scores, "last_epoch": replace(scores, epoch=99)},
                layers_at_epochs={99: last},
            )
        )
    found = analyse(runs, small_plan(seeds=10))
    assert {trend.direction for trend in found.temperature} == {"no trend"}
    assert {trend.direction for trend in found.last_temperature} == {"rises"}
    assert "at the last epoch T rises with sigma in 4 of 4" in found.sentence
    page = page_text(small_plan(seeds=10), [found])
    assert "| csbm | 1 | T rises with sigma | last | holds | 2 / 0 / 0 |" in page
    assert "| csbm | 1 | T rises with sigma | selected | does not hold |" in page
    moments = {trend["moment"] for trend in as_json([found])[0]["trends"]}
    assert moments == {"selected", "last_epoch"}


def test_the_page_says_when_a_flatter_attention_goes_with_t() -> None:
    runs = made_up_runs(temperature=0.1, entropy=0.02)
    found = analyse(runs, small_plan(seeds=10))
    for trend in found.temperature:
        assert found.entropy_beside(trend).direction == "rises"


def test_a_change_without_a_trend_is_told_too() -> None:
    # Up at the first level above none, and back to little more than without noise.
    lift = {0.0: 0.0, 1.0: 0.5, 3.0: 0.01}
    runs = []
    for run in made_up_runs():
        condition = run.condition or CLEAN
        if layer_values(run, "temperature") and condition.noise != "missing":
            value = 1 + lift[condition.level] + 1e-4 * run.seed
            learned = replace(run.selected, temperatures=(value, value))
            run = replace(run, selected=learned)
        runs.append(run)
    plan = small_plan(seeds=10)
    found = analyse(runs, plan)
    assert {t.direction for t in found.temperature} == {"no trend"}
    assert {end_of(t) for t in found.temperature} == {"higher"}
    page = page_text(plan, [found])
    assert (
        "| T rises with sigma | selected | does not hold | 0 / 0 / 2 | 2 / 0 / 0 |"
        in page
    )


def test_an_unfinished_study_is_called_incomplete() -> None:
    plan = small_plan(seeds=10)
    runs = [run for run in made_up_runs() if decays_temperature(run) is not False]
    page = page_text(plan, [analyse(runs, plan)])
    assert "210 of 280 runs, **incomplete**" in page


def words_of(folder: Path, *datasets: Path) -> list[str]:
    """The command on a small graph of one's own, with a short plan and recipe."""
    graph = small_graph().data
    arrays = {
        name: graph[name].numpy()
        for name in ("edge_index", "x", "y", "train_mask", "val_mask", "test_mask")
    }
    np.savez(folder / "mine.npz", **arrays)
    plan = small_plan(methods=["gat", "temp_only"]).model_dump(mode="json")
    (folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    recipe = quick_recipe().model_dump(mode="json")
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    names = ",".join(str(path) for path in (folder / "mine.npz", *datasets))
    words = ["noise", "--datasets", names, "--json", "--quiet", "--device", "cpu"]
    words += ["--levels", str(folder / "plan.yaml")]
    words += ["--recipe", str(folder / "recipe.yaml")]
    return [*words, "--out", str(folder / "out"), "--docs", str(folder / "docs")]


def test_the_command_trains_reports_and_prints_json(tmp_path: Path) -> None:
    words = words_of(tmp_path)
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0
    (found,) = json.loads(result.stdout)["datasets"]
    assert (found["runs"], found["expected_runs"]) == (42, 42)
    assert {trend["quantity"] for trend in found["trends"]} == {
        "temperature",
        "spread",
        "entropy",
    }
    assert len(read_noise_csv(tmp_path / "out" / "mine.csv")) == 42

    # Nothing is left to train; the summary is JSON as well.
    result = CliRunner().invoke(app, [*words, "--only-train"])
    assert json.loads(result.stdout) == {
        "datasets": [
            {
                "dataset": "mine",
                "runs": 42,
                "failed": 0,
                "file": str(tmp_path / "out" / "mine.csv"),
            }
        ]
    }


def test_a_dataset_that_cannot_be_trained_is_refused_before_any_is(
    tmp_path: Path,
) -> None:
    typed = HeteroData()
    typed["a"].x, typed["a"].y = torch.ones(4, 2), torch.tensor([0, 1, 0, 1])
    typed["b"].x = torch.ones(3, 2)
    typed["a", "to", "b"].edge_index = torch.tensor([[0, 1], [1, 2]])
    torch.save(typed, tmp_path / "typed.pt")
    for bad, reason in (
        (tmp_path / "typed.pt", "typed is a typed graph"),
        (tmp_path / "absent.npz", "absent.npz"),
    ):
        with pytest.raises(UserError, match=reason):
            CliRunner().invoke(app, words_of(tmp_path, bad), catch_exceptions=False)
        assert not (tmp_path / "out").exists()


def test_an_output_that_is_a_file_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(UserError, match="out is a file"):
        CliRunner().invoke(app, words_of(tmp_path), catch_exceptions=False)
