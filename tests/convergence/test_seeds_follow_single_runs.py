"""A seed trained in a group does what it does alone, at any slot and group size."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from tempergat.base.errors import UserError
from tempergat.data import Dataset, csbm, load
from tempergat.nn.methods import METHODS
from tempergat.ops.features.sparse import SparseFeatures
from tempergat.training import load_recipe, settings_on, train_group
from tempergat.training.loop import COLUMNS, Loop
from tests.support.plain_loop import train_plainly
from tests.support.run_settings import (
    CPU,
    config,
    loop_of,
    small_graph,
    trained_loop,
)

DROPOUT = {"feature_dropout": 0.4, "attention_dropout": 0.5}
EPOCHS = 10
LOSSES = [COLUMNS.index("loss"), COLUMNS.index("val_loss")]


@cache
def graph() -> Dataset:
    return small_graph()


def assert_follows(loop: Loop, slot: int, plain: dict[str, torch.Tensor]) -> None:
    history = loop.history[:, slot].cpu()
    expected = plain["history"]
    torch.testing.assert_close(
        history[:, LOSSES], expected[:, LOSSES], rtol=2e-4, atol=2e-5
    )
    # Scores may differ where two classes are tied within rounding: by one node.
    scores = history[:, len(LOSSES) :] - expected[:, len(LOSSES) :]
    assert (scores.abs() < 0.1).all()
    assert (scores.abs() > 1e-9).float().mean() < 0.05
    for name, value in loop.runs.state.items():
        torch.testing.assert_close(
            value[slot].detach().cpu(), plain[name], rtol=5e-3, atol=5e-4, msg=name
        )


@pytest.mark.parametrize(
    ("method", "dropout"),
    [*((method, DROPOUT) for method in METHODS), ("gcn", {}), ("gated_temp_v2", {})],
)
def test_a_seed_follows_its_single_run(method: str, dropout: dict[str, float]) -> None:
    settings = config(method, epochs=EPOCHS, **dropout)
    loop = trained_loop(settings, [7, 3, 11], graph())
    assert_follows(loop, 1, train_plainly(graph(), settings, 3))


@pytest.mark.parametrize("seeds", [[5], [5, 0], [0, 1, 2, 3, 4, 5, 6]])
def test_slot_and_group_size_do_not_matter(seeds: list[int]) -> None:
    settings = config("temp_gated_v2", epochs=EPOCHS, **DROPOUT)
    loop = trained_loop(settings, seeds, graph())
    plain = train_plainly(graph(), settings, 5)
    assert_follows(loop, seeds.index(5), plain)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_layers": 3, "residual": True},
        {"residual": "gate"},
        {"norm": "layer", "jk": "cat", "act": "relu"},
        {"num_layers": 1, "out_heads": 3},
        {"normalize_features": True, "init_temp": 0.5, "gate_bias_init": 1.0},
    ],
    ids=["deep", "gated skip", "layer norm and jk", "one layer", "initial values"],
)
def test_seeds_with_other_settings_follow_their_single_runs(
    changes: dict[str, Any],
) -> None:
    settings = config("temp_gated", epochs=EPOCHS, **DROPOUT, **changes)
    loop = trained_loop(settings, [1, 2], graph())
    assert_follows(loop, 1, train_plainly(graph(), settings, 2))


def test_each_seed_has_batch_statistics_of_its_own() -> None:
    changes = {"norm": "batch", "bias_before_norm": False, **DROPOUT}
    settings = config("temp_gated", epochs=EPOCHS, **changes)
    loop = trained_loop(settings, [1, 2], graph())
    assert_follows(loop, 1, train_plainly(graph(), settings, 2))


@pytest.mark.parametrize("method", ["gat", "gatv2", "transformer"])
def test_a_seed_of_the_default_recipe_scores_the_same_beside_others(
    method: str,
) -> None:
    recipe = load_recipe("default").config_for(method).with_changes(epochs=8)
    for seed in range(3):
        drawn = csbm(n=60 + 30 * seed, a=5, b=4, d=20, classes=3, seed=seed)
        settings = settings_on(recipe, drawn)
        three = train_group(drawn, settings, [0, 1, 2], CPU)[0]
        (alone,) = train_group(drawn, settings, [0], CPU)
        assert three.scores == alone.scores
        assert three.metrics == alone.metrics


def cora() -> Dataset:
    try:
        return load("cora")
    except UserError as error:
        pytest.skip(f"needs cora: {error}")


def test_seeds_on_sparse_features_follow_their_single_runs() -> None:
    settings = config("gated_v2", epochs=5, hidden_channels=16, **DROPOUT)
    loop = trained_loop(settings, [0, 1], cora())
    assert isinstance(loop.batches.batch.x, SparseFeatures)
    assert_follows(loop, 1, train_plainly(cora(), settings, 1))


def test_sparse_features_give_what_dense_ones_do() -> None:
    settings = config("gat", epochs=5, hidden_channels=16, normalize_features=True)
    sparse = trained_loop(settings, [0, 1], cora())
    dense = loop_of(settings, [0, 1], cora())
    batch = dense.batches.batch
    dense.batches.batch = replace(batch, x=batch.x.to_dense())
    dense.run()
    torch.testing.assert_close(
        sparse.history[..., LOSSES], dense.history[..., LOSSES], rtol=1e-4, atol=1e-5
    )


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["gcn", "temp_gated", "gated_temp_v2"])
def test_seeds_on_a_gpu_follow_their_single_runs(method: str) -> None:
    settings = config(method, **DROPOUT)
    loop = trained_loop(settings, [7, 3, 11], graph(), torch.device("cuda"))
    assert_follows(loop, 1, train_plainly(graph(), settings, 3))
