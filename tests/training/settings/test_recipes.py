"""Recipes hold what the paper states, and say what it leaves open."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tempergat.training import config_hash, load_recipe

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


def recipe(dataset: str) -> dict[str, Any]:
    return dict(yaml.safe_load((RECIPES / "paper" / f"{dataset}.yaml").read_text()))


def test_there_is_a_recipe_for_each_of_the_eleven_datasets() -> None:
    assert {path.stem for path in (RECIPES / "paper").glob("*.yaml")} == set(ATTENTION)


@pytest.mark.parametrize("dataset", ATTENTION)
def test_attention_settings_are_the_papers(dataset: str) -> None:
    values = recipe(dataset)
    attention = values["attention"]
    hidden = attention.get("channels_per_head", attention.get("hidden_channels"))
    assert (
        attention["epochs"],
        attention["num_layers"],
        attention["heads"],
        hidden,
        attention["feature_dropout"],
        attention["learning_rate"],
        values["runs"],
    ) == ATTENTION[dataset]
    assert attention["init_temp"] == 1.0
    assert attention["gate_bias_init"] == 0.0
    citation = dataset in ("cora", "citeseer", "pubmed")
    assert attention["gate_penalty"] == (1e-5 if citation else 1e-6)
    assert values["dataset"] == dataset
    assert values["metric"] == ("micro_f1" if dataset == "reddit" else "accuracy")


@pytest.mark.parametrize("dataset", GCN)
def test_gcn_settings_are_the_papers(dataset: str) -> None:
    gcn = recipe(dataset)["gcn"]
    layers, hidden, dropout, learning_rate, weight_decay = GCN[dataset]
    assert gcn["num_layers"] == layers
    assert gcn["hidden_channels"] == hidden
    assert gcn["feature_dropout"] == dropout
    assert gcn["learning_rate"] == learning_rate
    if weight_decay is not None:
        assert gcn["weight_decay"] == weight_decay


@pytest.mark.parametrize("dataset", ATTENTION)
def test_sampling_is_the_papers(dataset: str) -> None:
    values = recipe(dataset)
    assert values["training"] == ("sampled" if dataset in SAMPLING else "full")
    for block in (values["attention"], values["gcn"]):
        if dataset not in SAMPLING:
            assert "fanout" not in block
            continue
        fanout, batch_size, eval_batch_size = SAMPLING[dataset]
        assert block["fanout"] == fanout
        assert block["batch_size"] == batch_size
        if eval_batch_size is not None:
            assert block["eval_batch_size"] == eval_batch_size


@pytest.mark.parametrize("dataset", ATTENTION)
def test_every_unstated_value_says_so_and_why(dataset: str) -> None:
    text = (RECIPES / "paper" / f"{dataset}.yaml").read_text()
    attention = text.split("\nattention:\n")[1].split("\ngcn:\n")[0].splitlines()
    lines = {line.split(":")[0].strip(): line for line in attention}
    for key in UNSTATED_ATTENTION:
        assert "# unstated: " in lines[key], key


@pytest.mark.parametrize("dataset", ATTENTION)
def test_bias_that_the_paper_does_not_have_is_named(dataset: str) -> None:
    text = (RECIPES / "paper" / f"{dataset}.yaml").read_text()
    assert "gates act on every layer, and PyG's bias is added after them" in text


TRAINING = [p for p in sorted(RECIPES.rglob("*.yaml")) if p.parent.name != "studies"]


@pytest.mark.parametrize("path", TRAINING, ids=lambda p: p.stem)
def test_every_recipe_opens_with_what_to_expect_and_holds_numbers(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("# Expected")
    values = yaml.safe_load(text)
    numbers = ("learning_rate", "weight_decay", "feature_dropout", "gate_penalty")
    for block in (values["attention"], values["gcn"]):
        for key in numbers:
            # YAML reads 1e-5 without a point as text.
            assert isinstance(block.get(key, 0.0), float), key
    # The layers' own default is another.
    for name in {"attention", "gatv2"} & values.keys():
        assert values[name]["gate_bias_init"] == 0.0
