"""The model of typed graphs: maps into a shared space, layers, a classifier."""

import pytest
import torch

from tempergat.nn import METHODS, NodeType, TypedFeatures, build_typed_model
from tempergat.ops import Graph

TYPES = (NodeType("paper", 5, 3), NodeType("author", 4, 0), NodeType("venue", 2, 6))
EDGES = torch.tensor([[5, 6, 9, 10, 0, 7], [0, 1, 2, 0, 5, 3]])


def nodes() -> TypedFeatures:
    generator = torch.Generator().manual_seed(0)
    papers, venues = (torch.randn(s, generator=generator) for s in ((5, 3), (2, 6)))
    return TypedFeatures((papers, None, venues), num_targets=5)


def build(method: str = "gat", **kwargs: object):
    torch.manual_seed(1)
    options = {"num_layers": 2, "heads": 2, **kwargs}
    return build_typed_model(method, TYPES, 8, 3, **options)


@pytest.mark.parametrize("method", METHODS)
def test_only_nodes_of_the_target_type_get_scores(method: str) -> None:
    assert build(method).eval()(nodes(), Graph(EDGES, 11)).shape == (5, 3)


def test_the_model_is_maps_then_the_layers_then_a_linear_classifier() -> None:
    model = build(shared_channels=4).eval()
    x = nodes()
    paper, venue = model.projections
    h = torch.cat([paper(x.inputs[0]), model.tables[0].weight, venue(x.inputs[2])])
    graph = Graph(EDGES, 11)
    h = torch.nn.functional.elu(model.convs[0](h, graph))
    h = torch.nn.functional.elu(model.convs[1](h, graph)[:5])
    torch.testing.assert_close(model(x, graph), model.classifier(h))
    assert model.classifier.in_features == 4


@pytest.mark.parametrize("jk", [None, "cat"])
def test_no_bias_stands_before_the_batch_norm_of_a_typed_model(jk: str | None) -> None:
    model = build(norm="batch", jk=jk, bias_before_norm=False)
    assert [conv.bias for conv in model.convs] == [None, None]
    assert model.lin is None or model.lin.bias is None
    assert model.classifier.bias is not None


def test_nodes_in_another_order_get_the_same_scores() -> None:
    model = build("temp_gated").eval()
    x, order = nodes(), torch.tensor([0, 1, 2, 3, 4, 10, 5, 9, 6, 7, 8])
    place = torch.empty_like(order)
    place[order] = torch.arange(11)
    shuffled = TypedFeatures(x.inputs, x.num_targets, order)
    expected = model(x, Graph(EDGES, 11))
    found = model(shuffled, Graph(place[EDGES], 11))
    torch.testing.assert_close(found, expected)


def test_some_rows_of_a_table_have_a_sparse_gradient_of_those_rows() -> None:
    dense, sparse = build(), build()
    sparse.tables[0].sparse = True
    x, ids = nodes(), torch.tensor([3, 1])
    part = TypedFeatures((x.inputs[0], ids, x.inputs[2]), 5)
    graph = Graph(torch.tensor([[5, 6, 7], [0, 1, 2]]), 9)
    for model in (dense, sparse):
        model(part, graph).square().sum().backward()
    found = sparse.tables[0].weight.grad
    assert found.is_sparse
    assert set(found.coalesce().indices().flatten().tolist()) == {1, 3}
    torch.testing.assert_close(found.to_dense(), dense.tables[0].weight.grad)


def test_parameters_that_two_methods_share_start_equal() -> None:
    plain, gated = build("gat").state_dict(), build("gated").state_dict()
    assert len(plain) < len(gated)
    for name, value in plain.items():
        assert torch.equal(value, gated[name]), name


def test_a_model_needs_a_type_to_classify() -> None:
    with pytest.raises(ValueError, match="node_types is empty"):
        build_typed_model("gat", (), 8, 3)
