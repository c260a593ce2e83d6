"""The entry points check their arguments before a kernel reads them."""

from typing import Any

import pytest
import torch

from tempergat import ops
from tempergat.ops import Graph

GRAPH = Graph(torch.tensor([[0, 1, 4, 2], [1, 2, 0, 0]]), (5, 3))


def _arguments(kind: str) -> dict[str, Any]:
    if kind == "gat":
        return {
            "z": torch.randn(5, 2, 6),
            "att_src": torch.randn(2, 6),
            "att_dst": torch.randn(2, 6),
            "z_dst": torch.randn(3, 2, 6),
            "edge_score": torch.randn(4, 2),
        }
    return {
        "z_src": torch.randn(5, 2, 6),
        "z_dst": torch.randn(3, 2, 6),
        "att": torch.randn(2, 6),
        "edge": torch.randn(4, 2, 6),
    }


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in ("gat", "gatv2") for name in _arguments(kind)],
)
def test_a_tensor_of_another_shape_is_refused_by_name(kind: str, name: str) -> None:
    arguments = _arguments(kind)
    call = getattr(ops, kind)
    call(GRAPH, **arguments)
    right = arguments[name]
    for wrong in (right[:-1], torch.cat([right, right[:1]]), right[:, :1], right[0]):
        with pytest.raises(ValueError, match="must have shape"):
            call(GRAPH, **arguments | {name: wrong})
    with pytest.raises(ValueError, match=f"^{name} must have shape"):
        call(GRAPH, **arguments | {name: right[:-1]})


def test_edges_in_place_of_a_graph_and_numbers_in_place_of_tensors_are_refused() -> (
    None
):
    q, k, v = torch.randn(3, 3, 2, 6)
    with pytest.raises(TypeError, match=r"takes a Graph, got Tensor; .*edge_index"):
        ops.dot_product(GRAPH.edge_index, q, k, v)
    with pytest.raises(TypeError, match=r"temperature must be a tensor, got 0\.5"):
        ops.dot_product(GRAPH, q, k, v, temperature=0.5)


@pytest.mark.parametrize("kind", ["gat", "gatv2"])
@pytest.mark.parametrize(
    ("seed", "seen"),
    [
        (None, "got none"),
        (torch.arange(2, dtype=torch.int32), "got torch.int32"),
        (torch.arange(1), r"got torch.int64 of shape \[1\]"),
    ],
)
def test_dropout_needs_a_seed_for_every_head(kind: str, seed: Any, seen: str) -> None:
    with pytest.raises(ValueError, match=seen):
        getattr(ops, kind)(GRAPH, **_arguments(kind), dropout=0.5, dropout_seed=seed)


def test_targets_without_a_part_in_the_logits_have_a_gradient_of_zero() -> None:
    arguments = _arguments("gat") | {"att_dst": None}
    z_dst = arguments["z_dst"].requires_grad_()
    # Memory that is not empty.
    used = [torch.full_like(z_dst, 7.0) for _ in range(100)]
    del used
    out, _ = ops.gat(GRAPH, **arguments)
    out.sum().backward()
    assert z_dst.grad is not None
    assert torch.equal(z_dst.grad, torch.zeros_like(z_dst))


def test_a_rate_above_one_is_refused() -> None:
    seed = torch.arange(2)
    with pytest.raises(ValueError, match=r"between 0 and 1, got 1\.5"):
        ops.gat(GRAPH, **_arguments("gat"), dropout=1.5, dropout_seed=seed)


@pytest.mark.parametrize("shape", [(5, 0, 6), (5, 2, 0)], ids=str)
def test_features_without_heads_or_channels_give_empty_results(
    shape: tuple[int, ...],
) -> None:
    z, att = torch.zeros(shape), torch.zeros(shape[1:])
    choice = ops.explain(GRAPH, z)
    assert choice.backend == "reference"
    assert (
        f"nothing to compute for features of shape {list(shape)}"
        in (choice.refused["cpu"])
    )
    out, _ = ops.gat(GRAPH, z, att)
    assert out.shape == (3, *shape[1:])
