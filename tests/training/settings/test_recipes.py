"""Recipes hold what the paper states, and say what it leaves open."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tempergat.base import UserError
from tempergat.training import config_hash, load_recipe, recipe_names, recipe_text

RECIPES = Path(__file__).parents[3] / "src" / "tempergat" / "recipes"
FIXTURES = Path(__file__).parents[2] / "fixtures"
HASHES = json.loads((FIXTURES / "recipe_hashes.json").read_text())


@pytest.mark.parametrize("name", HASHES)
def test_stored_runs_of_a_recipe_stay_valid(name: str) -> None:
    recipe = load_recipe(name)
    settings = {method: recipe.config_for(method) for method in HASHES[name]}
    assert {
        method: config_hash(config.model_dump(mode="json"))
        for method, config in settings.items()
    } == HASHES[name]


# Table 2 and Table 4 of the paper: epochs, layers, heads, hidden, dropout, learning
# rate; then the number of runs.
ATTENTION = {
    "cora": (400, 2, 8, 8, 0.0, 0.005, 50),
    "citeseer": (500, 2, 8, 8, 0.5, 0.005, 50),
    "pubmed": (500, 2, 8, 8, 0.5, 0.01, 50),
    "ogbn-arxiv": (1000, 3, 4, 64, 0.3, 0.005, 20),
    "ogbn-products": (50, 3, 4, 64, 0.5, 0.003, 20),
    "reddit": (500, 2, 4, 32, 0.5, 0.003, 20),
    "mag-year": (50, 4, 8, 512, 0.2, 0.001, 10),
    "pokec": (50, 3, 8, 256, 0.5, 0.001, 10),
    "oag-chem": (50, 3, 8, 256, 0.2, 0.005, 10),
    "ogbn-mag": (50, 4, 8, 512, 0.2, 0.001, 10),
    "oag-cs": (50, 3, 4, 256, 0.2, 0.001, 10),
}
# The paper's text: layers, hidden, dropout, learning rate, weight decay.
GCN = {
    "cora": (2, 64, 0.5, 0.01, 5e-4),
    "citeseer": (2, 128, 0.5, 0.01, 5e-4),
    "pubmed": (2, 256, 0.5, 0.01, 5e-4),
    "ogbn-arxiv": (3, 256, 0.5, 0.01, 1e-3),
    "ogbn-products": (3, 256, 0.5, 0.01, 0.0),
    "reddit": (2, 256, 0.5, 0.01, None),
    "mag-year": (4, 512, 0.2, 0.001, 1e-5),
    "pokec": (3, 256, 0.5, 0.001, 1e-5),
    "oag-chem": (3, 256, 0.2, 0.005, 1e-5),
    "ogbn-mag": (4, 512, 0.2, 0.001, 1e-5),
    "oag-cs": (3, 256, 0.2, 0.005, 1e-5),
}
SAMPLING = {
    "ogbn-products": ([15, 10, 5], 2048, 4096),
    "reddit": ([25, 10], 4096, 8192),
    "mag-year": ([20, 10], 2048, None),
    "pokec": ([20, 10], 2048, None),
    "oag-chem": ([20, 10], 2048, None),
    "ogbn-mag": ([20, 10], 2048, None),
    "oag-cs": ([20, 10], 2048, None),
}
TYPED = ("mag-year", "pokec", "oag-chem", "ogbn-mag", "oag-cs")
UNSTATED_ATTENTION = (
    "out_heads",
    "act",
    "norm",
    "residual",
    "jk",
    "attention_dropout",
    "weight_decay",
    "decay_temperature",
    "decay_gate",
    "decay_bias",
    "normalize_features",
    "selection",
)


def blocks(dataset: str) -> dict[str, dict[str, Any]]:
    recipe = load_recipe(f"paper/{dataset}")
    methods = {"attention": "temp_gated", "gcn": "gcn"}
    return {
        block: recipe.config_for(method).model_dump()
        for block, method in methods.items()
    }


def test_there_is_a_recipe_for_each_of_the_eleven_datasets() -> None:
    named = {path.stem for path in (RECIPES / "paper").glob("*.yaml")}
    assert named == {*ATTENTION, *(f"{name}-as-printed" for name in TYPED)}


@pytest.mark.parametrize("dataset", TYPED)
def test_the_papers_words_on_typed_graphs_are_recipes_too(dataset: str) -> None:
    likelier, printed = (
        load_recipe(f"paper/{dataset}{end}") for end in ("", "-as-printed")
    )
    _, _, heads, hidden, *_ = ATTENTION[dataset]
    words = {"optimizer": "adam", "norm": None, "schedule": None, "clip_norm": None}
    for method, width in (("temp_gated", hidden * heads), ("gcn", hidden)):
        expected = likelier.config_for(method).with_changes(
            **words, hidden_channels=width
        )
        assert printed.config_for(method) == expected
        assert load_recipe(f"{dataset}-as-printed") == printed


@pytest.mark.parametrize("dataset", ATTENTION)
def test_attention_settings_are_the_papers(dataset: str) -> None:
    recipe = load_recipe(f"paper/{dataset}")
    attention = blocks(dataset)["attention"]
    epochs, layers, heads, hidden, dropout, learning_rate, runs = ATTENTION[dataset]
    # The paper's width is that of one head; on typed graphs we take it for all heads.
    is_of_head = "channels_per_head" in recipe.attention
    expected = {
        "epochs": epochs,
        "num_layers": layers,
        "heads": heads,
        "hidden_channels": hidden * heads if is_of_head else hidden,
        "feature_dropout": dropout,
        "learning_rate": learning_rate,
        "init_temp": 1.0,
        "gate_bias_init": 0.0,
        "gate_penalty": 1e-5 if dataset in ("cora", "citeseer", "pubmed") else 1e-6,
    }
    assert attention.items() >= expected.items()
    assert is_of_head == (recipe.attention.get("shared_channels") is None)
    assert (recipe.dataset, recipe.runs) == (dataset, runs)
    assert recipe.metric == ("micro_f1" if dataset == "reddit" else "accuracy")


@pytest.mark.parametrize("dataset", GCN)
def test_gcn_settings_are_the_papers(dataset: str) -> None:
    gcn = blocks(dataset)["gcn"]
    layers, hidden, dropout, learning_rate, weight_decay = GCN[dataset]
    assert gcn["num_layers"] == layers
    assert gcn["hidden_channels"] == hidden
    assert gcn["feature_dropout"] == dropout
    assert gcn["learning_rate"] == learning_rate
    if weight_decay is not None:
        assert gcn["weight_decay"] == weight_decay


@pytest.mark.parametrize("dataset", ATTENTION)
def test_sampling_is_the_papers(dataset: str) -> None:
    for settings in blocks(dataset).values():
        sampled = dataset in SAMPLING
        assert settings["training"] == ("sampled" if sampled else "full")
        fanout, batch_size, eval_batch_size = SAMPLING.get(dataset, (None, None, None))
        assert settings["fanout"] == (tuple(fanout) if sampled else None)
        assert settings["batch_size"] == batch_size
        if eval_batch_size is not None:
            assert settings["eval_batch_size"] == eval_batch_size


@pytest.mark.parametrize("dataset", ATTENTION)
def test_every_unstated_value_says_so_and_why(dataset: str) -> None:
    text = recipe_text(f"paper/{dataset}")
    attention = text.split("\nattention:\n")[1].split("\ngcn:")[0].splitlines()
    lines = {line.split(":")[0].strip(): line for line in attention}
    for key in UNSTATED_ATTENTION:
        assert "# unstated: " in lines[key], key


@pytest.mark.parametrize("dataset", ATTENTION)
def test_bias_that_the_paper_does_not_have_is_named(dataset: str) -> None:
    text = recipe_text(f"paper/{dataset}")
    assert "gates act on every layer, and PyG's bias is added after them" in text


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_opens_with_what_to_expect(name: str) -> None:
    text = recipe_text(name)
    assert text.startswith("# Expected")
    assert text.count("# Expected") == 1
    # The layers' own default is another.
    assert load_recipe(name).config_for("temp_gated").gate_bias_init == 0.0


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_is_printed_in_full(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.yaml"
    copy.write_text(recipe_text(name))
    assert "extends" not in yaml.safe_load(copy.read_text())
    assert load_recipe(copy) == load_recipe(name)


def write(folder: Path, **texts: str) -> Path:
    """Writes recipes by their names; returns the file of the first."""
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder / f"{next(iter(texts))}.yaml"


def test_a_recipe_holds_only_what_differs_from_the_one_it_extends(
    tmp_path: Path,
) -> None:
    mine = write(
        tmp_path,
        mine="extends: base.yaml\nmethods: {gat: {epochs: 9}, gated: {epochs: 8}}\n",
        base="extends: cora\nruns: 3\nattention: {epochs: 7, hidden_channels: 24}\n"
        "gatv2: {heads: 4}\nmethods: {gat: {learning_rate: 1.0}}\n",
    )
    recipe, cora = load_recipe(mine), load_recipe("cora")
    assert (recipe.dataset, recipe.runs) == ("cora", 3)
    changed = {
        "gat": {"epochs": 9, "hidden_channels": 24, "learning_rate": 1.0},
        "gated": {"epochs": 8, "hidden_channels": 24},
        "gatv2": {"epochs": 7, "hidden_channels": 24, "heads": 4},
        # What its own block does not say is as for the other methods.
        "gcn": {"epochs": 7},
    }
    for method, changes in changed.items():
        expected = cora.config_for(method).with_changes(**changes)
        assert recipe.config_for(method) == expected


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"a": "extends: a.yaml"}, "extends a.yaml, which extends it in turn; let one"),
        (
            {"a": "extends: ./b.yaml", "b": "extends: a.yaml"},
            "recipe ./b.yaml extends a.yaml, which extends it in turn; let one of them",
        ),
        ({"a": "extends: corra"}, "extends: no recipe 'corra'; .* did you mean cora"),
        ({"a": "extends: b.yaml"}, "cannot read recipe b.yaml: No such file"),
        ({"a": "extends: [cora]"}, r"extends is \['cora'\]; give the name of a recipe"),
        ({"a": "extends: cora\nepochs: 3"}, "epochs: no such setting"),
        ({"a": "extends: cora\ngcn: {heads: 3}"}, "gcn.heads: no such setting"),
        ({"a": "extends: cora\ngcn: 3"}, "gcn: Input should be a valid dictionary"),
        ({"a": "extends: cora\nattention: {heads: 0}"}, "attention.heads: .*got 0"),
        (
            {"a": "extends: cora\nmethods: {gated: {gate_penalty: -1.0}}"},
            "methods.gated.gate_penalty: .*got -1.0",
        ),
        ({"a": "extends: cora\nattention: {heads: x}"}, "attention.h.*got 'x'"),
    ],
)
def test_a_recipe_that_extends_wrongly_is_refused_in_one_line(
    tmp_path: Path, texts: dict[str, str], message: str
) -> None:
    with pytest.raises(UserError, match=message) as refused:
        load_recipe(write(tmp_path, **texts))
    assert "\n" not in str(refused.value)


def test_nothing_is_left_to_a_default_where_a_recipe_forgets_a_setting(
    tmp_path: Path,
) -> None:
    text = recipe_text("default").replace("  gate_penalty: 1.0e-05\n", "")
    with pytest.raises(UserError, match=r"attention\.gate_penalty is missing; give it"):
        load_recipe(write(tmp_path, a=text))
