"""On a graph without a recipe, validation scores choose `plain` or `default`."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.nn import SAGEConv

import tempergat
from tempergat.comparison.chosen import choose
from tempergat.comparison.display import Display
from tempergat.comparison.options import CompareOptions
from tempergat.comparison.plan import make_plan, read_graphs
from tempergat.comparison.results.comparison import Comparison
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.from_store import stored_comparisons
from tempergat.comparison.run import finished_part, run_plan
from tempergat.comparison.storage.export import export_stores, read_runs
from tempergat.comparison.storage.rows import RunKey
from tempergat.comparison.storage.store import Store
from tempergat.training import Run, Scores, load_recipe
from tests.support.made_up_runs import failed_run, run
from tests.support.tiny_graph import write_graph, write_graph_of_splits

METHODS = ("mlp", "gcn", "gat", "gated")
KINDS = {"plain": (False, None), "default": (True, "batch")}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return write_graph_of_splits(tmp_path / "graph.npz", 2)


def compared(graph: Path, **changes: Any) -> Comparison:
    arguments: dict[str, Any] = {
        "methods": METHODS,
        "runs": 4,
        "settings": {"epochs": 4, "hidden": 8},
        "device": "cpu",
        "progress": False,
    }
    return tempergat.compare(graph, **(arguments | changes))


def made_up(
    recipe: str, values: list[float | None], method: str = "gat", **changes: Any
) -> list[Run]:
    """A run for each validation score, a failed one for None."""
    settings = load_recipe(recipe).config_for(method).with_changes(**changes)
    config = settings.model_dump(mode="json")
    return [
        failed_run(method, seed, config=config)
        if val is None
        else run(
            method,
            seed,
            config=config,
            scores={"best_val_accuracy": Scores(3, 1.0, val, 1.0 - val)},
        )
        for seed, val in enumerate(values)
    ]


def recipe_of(one: Run) -> str:
    kind = (one.config["residual"], one.config["norm"])
    return next(name for name, own in KINDS.items() if own == kind)


def means_of(found: Comparison) -> dict[tuple[str, int, str], float]:
    """The mean validation score by method, split and recipe."""
    scores: dict[tuple[str, int, str], list[float]] = {}
    for one in found.every_run:
        val = one.scores["best_val_accuracy"].val
        scores.setdefault((one.method, one.split, recipe_of(one)), []).append(val)
    return {key: sum(values) / len(values) for key, values in scores.items()}


@pytest.mark.parametrize(
    ("plain", "default", "chosen"),
    [
        ([0.5, 0.7], [0.6, 0.7], "default"),
        ([0.7, 0.6], [0.6, 0.6], "plain"),
        # The same scores in another order.
        ([0.1, 0.2, 0.3], [0.3, 0.2, 0.1], "plain"),
        ([0.5, 0.5], [0.9, None], "plain"),
        ([None, None], [0.2, None], "default"),
        ([None, None], [None, None], "plain"),
        # Not finished: the seeds that both have decide.
        ([0.6, 0.9, 0.9], [0.7], "default"),
        ([], [0.7], "default"),
    ],
)
def test_the_better_mean_validation_score_is_chosen_and_failures_are_not(
    plain: list[float | None], default: list[float | None], chosen: str
) -> None:
    # Other settings are another choice.
    longer = made_up("plain", [0.9], epochs=9)
    found = choose([*longer, *made_up("plain", plain), *made_up("default", default)])
    assert longer[0] in found.compared
    found.compared.remove(longer[0])
    assert dict(found.recipes) == {("gat", 0): chosen}
    assert {recipe_of(one) for one in found.compared} == {chosen}
    assert len(found.compared) + len(found.others) == len(plain) + len(default)


def test_every_method_and_split_has_the_recipe_that_validation_prefers(
    graph: Path,
) -> None:
    found = compared(graph)
    means = means_of(found)
    assert len(means) == 2 * 2 * len(METHODS)
    assert len(found.every_run) == 2 * 4 * len(METHODS)
    for one in found.runs:
        plain, default = (means[one.method, one.split, name] for name in KINDS)
        assert recipe_of(one) == ("default" if default > plain else "plain")
    assert [(one.method, one.seed) for one in found.runs] == [
        (method, seed) for method in METHODS for seed in range(4)
    ]
    with_each = {row["method"]: row for row in found.facts["chosen"]}
    for recipe in KINDS:
        alone = compared(graph, recipe=recipe)
        for row in alone.table[: len(METHODS)]:
            assert with_each[row["method"]][recipe] == pytest.approx(row["mean"])
        assert alone.facts["chosen"] == []
    assert "what residual and norm bring" in found.to_markdown()
    assert "what residual and norm bring" in found.to_html()


def test_a_variant_and_its_backbone_are_compared_under_one_recipe() -> None:
    plain = {"gat": [0.6, 0.7, 0.8], "gated": [0.4, 0.5, 0.7]}
    default = {"gat": [0.5, 0.6, 0.7], "gated": [0.7, 0.8, 0.9]}
    runs = [
        one
        for recipe, scores in (("plain", plain), ("default", default))
        for method, values in scores.items()
        for one in made_up(recipe, list(values), method)
    ]
    found = choose(runs)
    assert dict(found.recipes) == {("gat", 0): "plain", ("gated", 0): "default"}
    result = dataset_result(
        found.compared,
        ["gat", "gated"],
        {"gated": "gat"},
        tuned=True,
        beside_backbones=found.beside_backbones,
    )
    comparison = result["gated"].comparison
    assert comparison is not None
    # Both with plain; test scores are one minus those of validation.
    assert comparison.difference == pytest.approx(100.0 * (0.2 + 0.2 + 0.1) / 3)
    assert result["gated"].summary.mean == pytest.approx(100.0 * (0.3 + 0.2 + 0.1) / 3)


@pytest.mark.parametrize("settings", [{}, {"lr": 0.01}, {"lr": 0.005}])
def test_a_store_gives_the_same_table_and_export(
    graph: Path, tmp_path: Path, settings: dict[str, float]
) -> None:
    out = tmp_path / "out"
    settings = {"epochs": 4, "hidden": 8, **settings}
    methods = (*METHODS, "transformer")
    found = compared(graph, out=out, settings=settings, methods=methods)
    # Methods that only one recipe was asked for have a table of their own.
    compared(graph, out=out, settings=settings, recipe="plain", methods="gatv2")
    first, second = stored_comparisons(out)
    assert first.to_csv() == found.to_csv()
    assert first.chosen == found.chosen
    assert first.to_markdown().split("**")[-1] == found.to_markdown().split("**")[-1]
    assert [row["method"] for row in second.table[:-1]] == ["gatv2"]
    export_stores([out], tmp_path / "runs.csv")
    exported = {RunKey.of(one) for one in read_runs(tmp_path / "runs.csv")}
    assert exported == {RunKey.of(one) for one in [*found.runs, *second.runs]}
    with Store(out / "store.sqlite") as store:
        assert len(store.runs()) == len(found.every_run) + len(second.runs)


def test_a_stopped_comparison_shows_its_part_and_ends_the_same(
    graph: Path, tmp_path: Path
) -> None:
    whole = compared(graph, methods=("gcn", "gat"))
    asked = ("gcn", "gat"), 4
    overrides = tempergat.training.make_overrides({"epochs": 4, "hidden": 8})
    (plan,) = read_graphs([make_plan(CompareOptions(graph, *asked), overrides)])
    seen: list[int] = []

    class Stop(Display):
        def progress(self, progress: Any) -> None:
            seen.append(progress.runs)
            # All of plain, and a part of default.
            if progress.runs_done >= 10:
                raise KeyboardInterrupt

    device = torch.device("cpu")
    with Store(tmp_path / "store") as store:
        with pytest.raises(KeyboardInterrupt):
            run_plan(plan, store, device, Stop())
        part = finished_part(plan, store, device)
        resumed = run_plan(plan, store, device)
    assert set(seen) == {16} == {plan.total_runs}
    assert part is not None
    assert not part.complete
    assert len(part.every_run) == 10
    means = means_of(part)
    for (method, split), recipe in part.chosen.items():
        other = next(name for name in KINDS if name != recipe)
        assert means[method, split, recipe] >= means.get((method, split, other), 0.0)
    assert resumed.complete
    assert resumed.chosen == whole.chosen
    assert [one.scores for one in resumed.runs] == [one.scores for one in whole.runs]


def test_methods_without_a_choice_are_trained_with_default_alone(
    graph: Path, tmp_path: Path
) -> None:
    found = compared(graph, methods=["gat", "transformer", SAGEConv])
    assert {one.method for one in found.other_runs} == {"gat"}
    assert found.recipe_of("transformer") == found.recipe_of("SAGEConv") == "default"
    sampled = {"training": "sampled", "fanout": "4,3", "batch_size": 8, "hidden": 8}
    once = compared(
        write_graph(tmp_path / "one.npz"),
        methods="gat",
        settings={"epochs": 2, **sampled},
    )
    assert (once.recipe, once.other_runs) == ("default", [])
    demo = make_plan(CompareOptions("demo", "gat", 1))
    assert (demo.recipe, demo.total_runs) == ("demo", 1)


def test_the_two_recipes_differ_in_what_is_chosen_alone() -> None:
    for method in METHODS:
        both = [load_recipe(name).config_for(method).model_dump() for name in KINDS]
        differ = {name for name in both[0] if both[0][name] != both[1][name]}
        assert differ == {"residual", "norm", "learning_rate"}
        assert [one["learning_rate"] for one in both] == [0.005, 0.01]
        assert [(one["residual"], one["norm"]) for one in both] == [*KINDS.values()]
