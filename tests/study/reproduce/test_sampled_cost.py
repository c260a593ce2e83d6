"""The costs of sampled training by arithmetic are near those that were measured."""

import pytest
import torch

from tempergat.data import find_entry
from tempergat.study.reproduce.sampled_cost import (
    batch_sizes,
    sampled_bytes,
    sampled_seconds,
)
from tempergat.training import load_recipe

PRODUCTS = find_entry("ogbn-products")


def test_a_batch_of_products_has_about_the_measured_size() -> None:
    config = load_recipe("paper/ogbn-products").config_for("temp_gated")
    nodes, edges = batch_sizes(PRODUCTS, config, 1024)
    assert nodes[-1] == pytest.approx(592_364, rel=0.3)
    assert edges[-1] == pytest.approx(809_286, rel=0.3)
    settings = config.with_changes(batch_size=1024)
    # Measured: 3.8 GiB with the graph and its features.
    assert 3.8 / 2 < sampled_bytes(PRODUCTS, settings) / 2**30 < 3.8 * 2


def test_an_epoch_on_a_gpu_takes_about_the_measured_time() -> None:
    config = load_recipe("paper/ogbn-products").config_for("temp_gated")
    config = config.with_changes(epochs=1, batch_size=1024, eval_batch_size=1024)
    seconds, source = sampled_seconds(PRODUCTS, config, torch.device("cuda"))
    # Measured: 1.9 s of steps; 12.5 times as many nodes are scored, at a third each.
    assert seconds == pytest.approx(1.9 + 12.5 / 3 * 1.9, rel=0.5)
    assert "an H200" in source


@pytest.mark.parametrize(
    ("name", "batch_size", "nodes", "gib", "epoch_s"),
    [
        ("ogbn-mag", 1024, 439_109, 109.2, 1957.3),
        ("pokec", 2048, 470_416, 32.8, 172.3),
        ("oag-cs", 2048, 665_223, 27.8, 40.7),
        ("oag-chem", 2048, 844_400, 63.1, 232.9),
    ],
)
def test_typed_datasets_cost_about_what_was_measured(
    name: str, batch_size: int, nodes: int, gib: float, epoch_s: float
) -> None:
    config = load_recipe(name).config_for("temp_gated")
    config = config.with_changes(batch_size=batch_size, epochs=1)
    entry = find_entry(name)
    assert batch_sizes(entry, config, batch_size).nodes[-1] == pytest.approx(
        nodes, rel=0.25
    )
    assert gib < sampled_bytes(entry, config) / 2**30 * 1.1 < 1.5 * gib
    seconds, source = sampled_seconds(entry, config, torch.device("cuda"))
    # The steps were measured; scoring all nodes with labels comes on top.
    assert 0.8 * epoch_s < seconds < 2.2 * epoch_s
    assert "typed datasets" in source


@pytest.mark.parametrize(
    "name", ["reddit", "ogbn-mag", "mag-year", "pokec", "oag-cs", "oag-chem"]
)
@pytest.mark.parametrize("method", ["gcn", "temp_gated_v2"])
def test_every_sampled_recipe_has_a_time_on_a_cpu(name: str, method: str) -> None:
    config = load_recipe(name).config_for(method)
    seconds, source = sampled_seconds(find_entry(name), config, torch.device("cpu"))
    on_gpu, _ = sampled_seconds(find_entry(name), config, torch.device("cuda"))
    assert 60 < on_gpu < seconds
    assert "a core of an AMD EPYC" in source
