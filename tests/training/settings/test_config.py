"""Settings are checked, frozen and named; recipes are found by name or path."""

import json
from itertools import cycle
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
import yaml
from pydantic import ValidationError

from tempergat.base.errors import UserError
from tempergat.nn.methods import METHODS
from tempergat.training import (
    config_hash,
    load_recipe,
    recipe_for,
    recipe_names,
    settings_on,
    train_group,
)
from tempergat.training.settings.fields import Activation, Normalisation
from tests.support.run_settings import config, small_graph

FIXTURES = Path(__file__).parents[2] / "fixtures" / "small_graph"


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_gives_settings_for_every_method(name: str) -> None:
    recipe = load_recipe(name)
    for method in METHODS:
        settings = recipe.config_for(method)
        assert settings.method == method
        assert settings.training == recipe.training


def test_a_datasets_name_finds_the_papers_recipe() -> None:
    assert load_recipe("cora") == load_recipe("paper/cora")


def test_the_width_is_that_of_all_heads_together() -> None:
    # 8 channels for each of 8 heads in one recipe, 512 in all in the other.
    assert load_recipe("cora").config_for("gat").hidden_channels == 64
    assert load_recipe("mag-year").config_for("gat").hidden_channels == 512
    assert load_recipe("cora").config_for("gcn").hidden_channels == 64


@pytest.mark.parametrize("name", recipe_names())
def test_mlp_has_the_settings_of_gcn(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.config_for("gcn").with_changes(method="mlp") == recipe.config_for(
        "mlp"
    )


def recipe_file(folder: Path, **changes: Any) -> Path:
    source = Path(__file__).parents[3] / "src/tempergat/recipes/default.yaml"
    values = yaml.safe_load(source.read_text())
    for key, value in changes.items():
        block, _, setting = key.partition("__")
        if setting:
            values[block] = {**values[block], setting: value}
        else:
            values[block] = value
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def test_a_user_recipe_is_read_from_its_path(tmp_path: Path) -> None:
    recipe = load_recipe(recipe_file(tmp_path, runs=3, attention__epochs=7))
    assert recipe.runs == 3
    assert recipe.config_for("gated").epochs == 7


def test_methods_on_gatv2_can_have_settings_of_their_own(tmp_path: Path) -> None:
    attention = load_recipe("default").attention
    path = recipe_file(tmp_path, gatv2={**attention, "learning_rate": 0.5})
    recipe = load_recipe(path)
    assert recipe.config_for("gated_v2").learning_rate == 0.5
    assert recipe.config_for("gated").learning_rate == attention["learning_rate"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attention__epochs": 0}, "attention.epochs: .*equal to 1.*got 0"),
        ({"attention__epochs": 10**30}, "attention.epochs: .*less than or equal"),
        ({"attention__num_layers": 10**30}, "num_layers: .*less than or equal"),
        ({"gcn__hidden_channels": 10**30}, "hidden_channels: .*less than or equal"),
        ({"gcn__epoch": 3}, "gcn.epoch: no such setting; did you mean epochs"),
        ({"gatv2": {"epoch": 3}}, "gatv2.epoch: no such setting; did you mean"),
        (
            {"methods": {"gated": {"lerning_rate": 0.1}}},
            "methods.gated.lerning_rate: no such setting; did you mean learning_rate",
        ),
        ({"methods": {"gcn": {"heads": 2}}}, "methods.gcn.heads: no such setting"),
        ({"zzz": 3}, "zzz: no such setting; choose one of attention, "),
        ({"attention__act": "threshold"}, "attention.act: .*'threshold'"),
        ({"attention__norm": "message"}, "attention.norm: .*'message'"),
        ({"attention__jk": "lstm"}, "attention.jk: .*'lstm'"),
        ({"attention__gate_bias_init": 1e300}, "gate_bias_init: .*got 1e.300"),
        ({"attention__feature_dropout": 1.0}, "feature_dropout: .*less than 1"),
        ({"attention__learning_rate": "low"}, "learning_rate: .*got 'low'"),
        ({"attention__hidden_channels": 64}, "either channels_per_head or"),
        ({"gcn__selection": "best"}, "gcn.selection: .*'best'"),
        ({"training": "both"}, "training: .*'both'"),
    ],
)
def test_a_wrong_recipe_is_refused_in_one_line(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as refused:
        load_recipe(recipe_file(tmp_path, **change))
    assert "\n" not in str(refused.value)


def test_text_that_is_no_recipe_is_refused(tmp_path: Path) -> None:
    for number, text in enumerate(("a: [", "- 1", "", "!!python/object:os.x {}")):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        with pytest.raises(UserError, match="recipe"):
            load_recipe(path)
    with pytest.raises(UserError, match="cannot read recipe"):
        load_recipe(tmp_path / "absent.yaml")


def test_a_setting_given_twice_is_refused(tmp_path: Path) -> None:
    path = recipe_file(tmp_path)
    path.write_text(path.read_text().replace("  epochs:", "  epochs: 9\n  epochs:", 1))
    with pytest.raises(UserError, match=r"epochs occurs twice .*line \d+"):
        load_recipe(path)


def test_numbers_may_be_written_without_a_point(tmp_path: Path) -> None:
    path = recipe_file(tmp_path)
    text = path.read_text()
    path.write_text(text.replace("learning_rate: 0.01", "learning_rate: 1e-2"))
    assert path.read_text() != text
    assert load_recipe(path) == load_recipe("default")


@pytest.mark.parametrize(
    "text",
    ["runs: " + "9" * 5000, "runs: 2020-13-45", "runs: " + "[" * 3000 + "]" * 3000],
    ids=["a number beyond all bounds", "a date that cannot be", "too deep"],
)
def test_values_that_python_cannot_hold_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"recipe .*mine.yaml is not YAML") as refused:
        load_recipe(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("act", get_args(Activation))
def test_every_activation_trains(act: str) -> None:
    settings = config("gated_v2", act=act, epochs=2)
    (result,) = train_group(small_graph(), settings, [0], torch.device("cpu"))
    assert result.status == "done"


# With torch 2.6 GraphNorm of several seeds at once is slower, and torch says so.
@pytest.mark.filterwarnings("ignore:There is a performance drop.*scatter_add_")
@pytest.mark.parametrize(
    ("norm", "jk"), [*zip(get_args(Normalisation), cycle(("last", "cat", "max")))]
)
def test_every_normalisation_and_way_to_jump_trains(norm: str, jk: str) -> None:
    settings = config("gated_v2", norm=norm, jk=jk, epochs=2)
    results = train_group(small_graph(), settings, [0, 1], torch.device("cpu"))
    assert [result.status for result in results] == ["done", "done"]


def test_settings_before_a_batch_norm_leave_the_bias_out_and_have_another_hash() -> (
    None
):
    for name, has_bias in (("default", False), ("plain", True)):
        before = load_recipe(name).config_for("gat")
        used = settings_on(before, small_graph())
        assert used.bias_before_norm is has_bias
        hashes = [config_hash(c.model_dump(mode="json")) for c in (before, used)]
        assert (hashes[0] == hashes[1]) is has_bias
    # Without batch norm again, as a search may try, they are those of before.
    again = settings_on(used.with_changes(norm="batch"), small_graph())
    assert settings_on(again.with_changes(norm=None), small_graph()) == used
    own = config(norm="batch").with_changes(method="mine", source_hash="0" * 16)
    assert settings_on(own, small_graph()) is own


def test_unknown_names_come_with_a_suggestion() -> None:
    with pytest.raises(UserError, match="did you mean cora"):
        load_recipe("corra")
    with pytest.raises(UserError, match="did you mean temp_gated"):
        load_recipe("cora").config_for("tempgated")


def test_every_setting_of_stored_runs_is_written_and_no_other() -> None:
    # The hash that names stored runs is made of these values.
    configs = json.loads((FIXTURES / "runs.configs.json").read_text())
    assert len(configs) == 4
    recipe = load_recipe(FIXTURES / "recipe.yaml")
    for stored in configs.values():
        settings = recipe.config_for(stored["method"])
        assert settings.model_dump(mode="json") == stored


def test_a_users_own_module_has_the_settings_of_attention() -> None:
    recipe = load_recipe("default")
    own = recipe.config_for("mine", "abc")
    assert (own.method, own.source_hash) == ("mine", "abc")
    assert own.model_dump()["source_hash"] == "abc"
    assert own.epochs == recipe.attention["epochs"]
    with pytest.raises(UserError, match="'gat' is a built-in method; rename yours"):
        recipe.config_for("gat", "abc")


@pytest.mark.parametrize(
    ("graph", "name"),
    [
        ("cora", "paper/cora"),
        ("Cora", "paper/cora"),
        ("graphs/mine.npz", "default"),
        (object(), "default"),
    ],
)
def test_a_graph_is_given_the_papers_recipe_or_the_default(
    graph: object, name: str
) -> None:
    assert recipe_for(graph) == (name, load_recipe(name))


def test_a_recipe_may_be_given_by_name_or_itself() -> None:
    recipe = load_recipe("paper/pubmed")
    assert recipe_for("cora", "paper/pubmed") == ("paper/pubmed", recipe)
    assert recipe_for("cora", recipe) == ("given", recipe)
    assert recipe_for("reddit")[1].training == "sampled"


def test_settings_do_not_change() -> None:
    settings = config()
    with pytest.raises(ValidationError):
        settings.epochs = 3
    assert settings.with_changes(epochs=3).epochs == 3
    assert settings.epochs == 50
    with pytest.raises(UserError, match="heads is 3"):
        settings.with_changes(heads=3)
