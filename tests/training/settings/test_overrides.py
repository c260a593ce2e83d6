"""Settings given in place of a recipe's."""

from pathlib import Path
from typing import Any

import pytest

import tempergat
from tempergat.base import UserError
from tempergat.training import (
    PARTS,
    RunConfig,
    help_of,
    load_recipe,
    make_overrides,
    metric_of_run,
    values_of,
)
from tests.support.tiny_graph import write_recipe

SETTINGS = {
    "epochs": 50,
    "lr": 0.1,
    "hidden": 12,
    "heads": 3,
    "layers": 4,
    "dropout": 0.25,
}


def test_flags_of_the_commands_are_arguments_in_python() -> None:
    model = tempergat.train("demo", "gat", progress=False, epochs=2, hidden=8)
    assert (model.config.epochs, model.config.hidden_channels) == (2, 8)
    found = tempergat.compare("demo", ["gat"], 1, progress=False, epochs=2, lr=None)
    assert {run.config["epochs"] for run in found.runs} == {2}
    for call in (tempergat.train, tempergat.compare):
        with pytest.raises(UserError, match="no argument 'epoch'; did you mean epochs"):
            call("demo", epoch=2)
        with pytest.raises(UserError, match="epochs is given twice"):
            call("demo", epochs=2, settings={"epochs": 3})
    with pytest.raises(UserError, match="no argument 'run'; did you mean runs"):
        tempergat.compare("demo", run=2)


def test_none_is_a_value_of_arguments_that_can_be_none() -> None:
    given = {"norm": None, "clip_norm": None, "epochs": None, "eval_batch_size": None}
    overrides = make_overrides(keywords=given)
    assert overrides == make_overrides({"norm": None, "clip_norm": None})
    with pytest.raises(UserError, match="init_temp is None; give a number"):
        make_overrides(keywords={"init_temp": None})


def test_settings_replace_those_of_the_recipe_for_every_method() -> None:
    overrides = make_overrides(SETTINGS)
    recipe = load_recipe("default")
    gat = overrides.applied_to(recipe.config_for("gat"), "demo")
    assert gat == recipe.config_for("gat").with_changes(
        epochs=50,
        learning_rate=0.1,
        hidden_channels=12,
        heads=3,
        num_layers=4,
        feature_dropout=0.25,
        attention_dropout=0.25,
    )
    gcn = overrides.applied_to(recipe.config_for("gcn"), "demo")
    assert gcn == recipe.config_for("gcn").with_changes(
        epochs=50,
        learning_rate=0.1,
        hidden_channels=12,
        num_layers=4,
        feature_dropout=0.25,
    )
    mine = recipe.config_for("mine", "0" * 16)
    assert overrides.applied_to(mine, "demo") == mine.with_changes(
        epochs=50, learning_rate=0.1
    )
    words = " with epochs=50, lr=0.1, hidden=12, heads=3, layers=4, dropout=0.25"
    assert overrides.words == words


def test_without_settings_the_recipe_stays_as_it_is() -> None:
    config = load_recipe("default").config_for("gat")
    overrides = make_overrides()
    assert overrides.applied_to(config, "demo") is config
    assert overrides.words == ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs is 0; give a whole number from 1 to 1,000,000"),
        ({"epochs": 2.5}, "epochs is 2.5; give a whole number"),
        ({"epochs": True}, "epochs is True; give a whole number"),
        ({"lr": -1}, "lr is -1; give a number above 0"),
        ({"lr": float("nan")}, "lr is nan; give a number above 0"),
        ({"dropout": 1}, "dropout is 1; give a number from 0 up to, but less than, 1"),
        ({"layers": 10**6}, "layers is 1000000; give a whole number from 1 to 1,000"),
        ({"epoch": 3}, "no setting 'epoch' to change; did you mean epochs?"),
        ({"gate_penalti": 1.0}, "did you mean gate_penalty? `tempergat methods --sett"),
        ({"gate_penalty": -1.0}, "gate_penalty is -1.0; give a number of at least 0"),
        ({"residual": "maybe"}, "residual is 'maybe'; give true, false or gate"),
        (
            {"norm": "x"},
            "norm is 'x'; give batch, graph, instance, layer, pair or none",
        ),
        ({"edge_weight": True}, "there is no setting 'edge_weight' to change"),
        ({"lr": 0.1, "learning_rate": 0.1}, "lr and learning_rate set the same; give"),
        (
            {"dropout": 0.1, "attention_dropout": 0.2},
            "dropout and attention_dropout set",
        ),
    ],
)
def test_a_setting_out_of_its_range_is_refused_with_the_range(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as refused:
        make_overrides(settings)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"heads": 3}, "hidden is 64 and heads is 3.*give hidden 63 or heads 2"),
        ({"hidden": 20}, "hidden is 20 and heads is 8.*give hidden 16 or heads 5"),
        ({"hidden": 3}, "hidden is 3 and heads is 8.*give hidden 8 or heads 3"),
    ],
)
def test_a_width_that_heads_do_not_divide_is_refused_with_one_that_they_do(
    settings: dict[str, int], message: str
) -> None:
    config = load_recipe("default").config_for("gat")
    with pytest.raises(UserError, match=message):
        make_overrides(settings).applied_to(config, "demo")


def test_unknown_metrics_and_weights_are_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="metric is 'macro-f1'; give accuracy"):
        make_overrides(keywords={"metric": "macro-f1"})
    with pytest.raises(UserError, match="class_weights is 'even'; give balanced"):
        make_overrides({"class_weights": "even"})


def test_the_metric_of_the_dataset_itself_is_no_change() -> None:
    config = load_recipe("default").config_for("gat")
    for metric, graph, expected in (
        ("accuracy", "cora", None),
        ("accuracy", "reddit", "accuracy"),
        ("micro_f1", "reddit", None),
        ("macro_f1", "cora", "macro_f1"),
        ("accuracy", object(), None),
    ):
        changed = make_overrides(keywords={"metric": metric}).applied_to(config, graph)
        assert changed.metric == expected


def test_a_ranking_metric_of_a_dataset_is_named_in_the_settings() -> None:
    config = load_recipe("default").config_for("gat")
    for metric, expected in (
        (None, "roc_auc"),
        ("roc_auc", "roc_auc"),
        ("accuracy", None),
    ):
        changed = make_overrides(keywords={"metric": metric}).applied_to(
            config, "tolokers"
        )
        assert changed.metric == expected
        assert metric_of_run(changed, "tolokers") == (expected or "accuracy")
    assert make_overrides().applied_to(config, "reddit").metric is None
    assert metric_of_run(config, "reddit") == "micro_f1"


def test_the_metric_of_a_recipe_acts(tmp_path: Path) -> None:
    path = write_recipe(tmp_path / "mine.yaml")
    text = path.read_text()
    plain = load_recipe(path).config_for("gat")
    assert plain.metric is None
    for metric in ("micro_f1", "roc_auc"):
        path.write_text(text.replace("metric: accuracy", f"metric: {metric}"))
        assert load_recipe(path).config_for("gat").metric == metric
    path.write_text(text.replace("metric: accuracy", "class_weights: balanced"))
    weighted = load_recipe(path).config_for("gat")
    assert weighted == plain.with_changes(class_weights="balanced")
    path.write_text(text.replace("metric: accuracy\n", "").replace("dataset: null", ""))
    assert load_recipe(path).config_for("gat") == plain


def test_the_dataset_of_a_recipe_acts() -> None:
    recipe = load_recipe("paper/cora")
    assert recipe.made_for_another("cora") is None
    assert recipe.made_for_another("Cora") is None
    assert recipe.made_for_another("citeseer") == "cora"
    assert recipe.made_for_another(object()) == "cora"
    assert load_recipe("default").made_for_another("citeseer") is None


WRITTEN = {
    "gate_penalty=1e-6": ("gate_penalty", 1e-6),
    "gate-bias-init = 2": ("gate_bias_init", 2.0),
    "decay_temperature=false": ("decay_temperature", False),
    "residual=gate": ("residual", "gate"),
    "residual=true": ("residual", True),
    "norm=none": ("norm", None),
    "epochs=7": ("epochs", 7),
    "clip_norm=none": ("clip_norm", None),
    "selection=last_epoch": ("selection", "last_epoch"),
    "metric=roc_auc": ("metric", "roc_auc"),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_every_setting_can_be_written_as_name_and_value(text: str) -> None:
    name, value = WRITTEN[text]
    overrides = make_overrides(written=[text])
    assert overrides == make_overrides({name: value})
    config = overrides.applied_to(load_recipe("demo").config_for("temp_gated"), "demo")
    found = getattr(config, name)
    assert found == value
    assert type(found) is type(value)
    # The words can be typed again.
    again = overrides.words.removeprefix(" with ")
    assert make_overrides(written=[again]) == overrides


def test_hops_are_written_with_commas() -> None:
    texts = ["training=sampled", "fanout=4,3"]
    overrides = make_overrides(written=texts)
    assert overrides.values == {"training": "sampled", "fanout": (4, 3)}
    assert overrides.words == " with training=sampled, fanout=4,3"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["epochs"], "--set is 'epochs'; write it as NAME=VALUE, like gate_penalty="),
        (["=3"], "there is no setting '' to change"),
        (["epochs="], "epochs is ''; give a whole number from 1"),
        (["epochs=1.5"], "epochs is '1.5'; give a whole number"),
        (["epochs=none"], "epochs is None; give a whole number"),
        (["lr=inf"], "lr is 'inf'; give a number above 0"),
        (["lr=0.1", "lr=0.1"], "lr is given twice; give it once"),
        (["source_hash=x"], "there is no setting 'source_hash' to change"),
    ],
)
def test_what_is_written_wrongly_is_refused_in_one_line(
    texts: list[str], message: str
) -> None:
    with pytest.raises(UserError) as refused:
        make_overrides(written=texts)
    assert message in str(refused.value)


def test_a_setting_changes_the_methods_that_have_it_and_no_other() -> None:
    recipe = load_recipe("default")
    overrides = make_overrides({"gate_penalty": 1.0, "init_temp": 2.0, "heads": 4})
    for method, changes in {
        "mlp": {},
        "gat": {"heads": 4},
        "gated": {"heads": 4, "gate_penalty": 1.0},
        "temp_only": {"heads": 4, "init_temp": 2.0},
    }.items():
        before = recipe.config_for(method)
        assert overrides.applied_to(before, "demo") == before.with_changes(**changes)
    notes = overrides.notes_for(["mlp", "gat", "temp_gated"])
    assert notes[0] == (
        "gate_penalty is for methods with a gate, like gated, and does not change mlp "
        "and gat"
    )
    with pytest.raises(UserError, match="a temperature, like temp_only, not for gat; "):
        make_overrides({"init_temp": 2.0}).notes_for(["gat"])
    with pytest.raises(
        UserError, match="hidden is for built-in methods, like gat, not"
    ):
        make_overrides({"hidden": 8}).notes_for(["mine"])


def test_all_settings_but_what_graph_and_method_decide_can_be_set() -> None:
    decided = {"method", "source_hash", "scale_features", "edge_weight"}
    assert RunConfig.model_fields.keys() - PARTS.keys() == decided | {
        "bias_before_norm"
    }
    for name in PARTS:
        assert help_of(name).endswith(".")
        assert values_of(name)
