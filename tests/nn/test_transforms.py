"""Layers under torch.func's transforms, and with maps that users have changed."""

import pickle

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, vjp, vmap
from torch.nn.utils import prune
from torch_geometric.nn import GATConv

from tempergat import Graph
from tempergat.nn import TemperGATConv, TemperGATv2Conv, build_model, gate_penalty
from tempergat.ops import random
from tempergat.ops.features.elementwise import dropout
from tempergat.ops.features.sparse import SparseFeatures
from tempergat.ops.graphs.cache import tensor_cache
from tests.support.layers import FIRST_MAPS, LAYERS
from tests.support.versions import needs_torch

takes_classes = needs_torch(2, 8, "torch.export takes registered classes as inputs")

X = torch.randn(10, 5, generator=torch.Generator().manual_seed(0))
EDGES = torch.randint(0, 10, (2, 40), generator=torch.Generator().manual_seed(1))
SEED = torch.tensor(7)


def parameters(module):
    return {name: p.detach() for name, p in module.named_parameters()}


def copies(module, count=2):
    return {n: torch.stack([p] * count) for n, p in parameters(module).items()}


def run(conv, way):
    """The layer's output for X, in one of the ways its maps are computed."""
    if way == "sparse":
        return conv(X.to_sparse(), EDGES)
    if way == "many models":
        call = vmap(lambda p: functional_call(conv, p, (X, EDGES)))
        return call(copies(conv))[1]
    return conv(X, EDGES)


@pytest.mark.parametrize("way", ["sparse", "many models"])
@pytest.mark.parametrize("backbone", LAYERS)
def test_hooks_on_a_map_are_called(backbone, way):
    conv = LAYERS[backbone](5, 4, heads=2, residual=True)
    skip = "lin_skip" if backbone == "transformer" else "res"
    for name in (FIRST_MAPS[backbone], "lin_gate", skip):
        getattr(conv, name).register_forward_hook(lambda m, inputs, out: 2 * out)
    expected = run(conv, "dense")
    assert torch.allclose(run(conv, way), expected, atol=1e-5)


@pytest.mark.parametrize("way", ["dense", "sparse", "many models"])
@pytest.mark.parametrize("backbone", LAYERS)
def test_a_pruned_map_follows_its_parameter(backbone, way):
    conv = LAYERS[backbone](5, 4, heads=2)
    lin = getattr(conv, FIRST_MAPS[backbone])
    prune.l1_unstructured(lin, "weight", amount=0.5)
    conv(X, EDGES)
    with torch.no_grad():
        lin.weight_orig.mul_(3.0)
    out = run(conv, way)
    prune.remove(lin, "weight")
    assert torch.allclose(out, run(conv, "dense"), atol=1e-5)


class Adapted(torch.nn.Module):
    """A map and a correction of low rank, under the map's own attributes."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.down = torch.nn.Parameter(torch.randn(2, base.weight.size(1)))
        self.up = torch.nn.Parameter(torch.randn(base.weight.size(0), 2))

    weight = property(lambda self: self.base.weight)
    bias = property(lambda self: self.base.bias)
    in_channels = property(lambda self: self.base.in_channels)
    out_channels = property(lambda self: self.base.out_channels)

    def forward(self, x):
        return self.base(x) + x @ self.down.t() @ self.up.t()


@pytest.mark.parametrize("way", ["dense", "sparse", "many models"])
@pytest.mark.parametrize("backbone", LAYERS)
def test_a_module_in_the_place_of_a_map_is_called(backbone, way):
    conv = LAYERS[backbone](5, 4, heads=2)
    name = FIRST_MAPS[backbone]
    adapted = Adapted(getattr(conv, name))
    setattr(conv, name, adapted)
    conv.lin_gate = torch.nn.Linear(5, 8)
    out = run(conv, way)
    with torch.no_grad():
        adapted.base.weight += adapted.up @ adapted.down
        adapted.up.zero_()
    assert torch.allclose(out, run(conv, "dense"), atol=1e-4)


@pytest.mark.parametrize("way", ["dense", "sparse", "many models"])
def test_torch_s_own_linear_serves_as_a_map(way):
    conv = TemperGATConv(5, 4, heads=2)
    conv.lin = torch.nn.Linear(5, 8, bias=False)
    merged = TemperGATConv(5, 4, heads=2)
    merged.load_state_dict(conv.state_dict())
    assert torch.allclose(run(conv, way), run(merged, "dense"), atol=1e-5)


def test_a_module_in_the_place_of_the_edges_map_need_not_be_linear():
    options = {"heads": 2, "edge_dim": 3}
    theirs = GATConv(5, 4, **options)
    ours = TemperGATConv(5, 4, **options, temperature=None, gate=None)
    ours.load_state_dict(theirs.state_dict())
    ours.lin_edge = theirs.lin_edge = torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.ReLU()
    )
    edge_attr = torch.randn(40, 3)
    expected = theirs(X, EDGES, edge_attr)
    assert torch.allclose(ours(X, EDGES, edge_attr), expected, atol=1e-5)


@pytest.mark.parametrize("transform", [vmap, jacrev])
@pytest.mark.parametrize("in_channels", [-1, (-1, -1)])
def test_lazy_layers_take_their_width_inside_a_transform(transform, in_channels):
    conv = TemperGATv2Conv(in_channels, 4)
    inputs = torch.stack([X, 2 * X]) if transform is vmap else X
    transform(lambda x: conv((x, x), EDGES))(inputs)
    conv(X, EDGES).sum().backward()
    assert all(p.grad is not None for p in conv.parameters())


def make_model(**options):
    return build_model("temp_gated", 5, 8, 3, heads=2, **options).double()


def test_forward_mode_agrees_with_finite_differences():
    model = make_model(dropout=0.5, attention_dropout=0.5)
    base = parameters(model)
    ways = {name: torch.randn_like(p) for name, p in base.items()}

    def scores(values):
        options = {"dropout_seed": SEED}
        return functional_call(model, values, (X.double(), EDGES), options)

    def moved(by):
        return scores({name: p + by * ways[name] for name, p in base.items()})

    expected = (moved(1e-6) - moved(-1e-6)) / 2e-6
    _, tangent = jvp(scores, (base,), (ways,))
    assert torch.allclose(tangent, expected, atol=1e-6)
    with forward_ad.dual_level():
        duals = {n: forward_ad.make_dual(p, ways[n]) for n, p in base.items()}
        tangent = forward_ad.unpack_dual(scores(duals)).tangent
    assert torch.allclose(tangent, expected, atol=1e-6)


@pytest.mark.parametrize("given", ["dense", "sparse"])
def test_forward_and_reverse_mode_give_the_same_jacobian(given):
    model = make_model().float().eval()
    x = X.to_sparse() if given == "sparse" else X

    def scores(values):
        return functional_call(model, values, (x, EDGES)).sum(0)

    forward, reverse = (j(scores)(parameters(model)) for j in (jacfwd, jacrev))
    for name, expected in reverse.items():
        assert torch.allclose(forward[name], expected, atol=1e-5), name


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo])
def test_sparse_features_and_edges_first_seen_by_a_transform(layout):
    model = make_model().float()
    x, edges = X.to_sparse(layout=layout), EDGES.clone()

    def loss(values):
        return functional_call(model, values, (x, edges)).square().sum()

    found = grad(loss)(parameters(model))
    loss(dict(model.named_parameters())).backward()
    for name, p in model.named_parameters():
        assert torch.allclose(found[name], p.grad, atol=1e-4), name


@pytest.mark.parametrize("given", ["tensor", "graph"])
def test_edges_may_be_an_argument_of_a_transformed_function(given):
    conv = TemperGATConv(5, 4)
    edges = Graph(EDGES, 10) if given == "graph" else EDGES

    def loss(values, x, edges):
        return functional_call(conv, values, (x, edges)).square().sum()

    found = vmap(grad(loss), (0, None, None))(copies(conv), X, edges)
    loss(dict(conv.named_parameters()), X, edges).backward()
    for name, p in conv.named_parameters():
        assert torch.allclose(found[name][1], p.grad, atol=1e-4), name


def test_graphs_that_differ_between_models_are_refused_in_words():
    conv = TemperGATConv(5, 4)
    with pytest.raises(ValueError, match="in_dims=None"):
        vmap(conv, (None, 0))(X, torch.stack([EDGES, EDGES]))


def test_a_graph_first_used_by_a_transform_can_be_stored():
    conv, graph = TemperGATConv(5, 4), Graph(EDGES, 10)
    grad(lambda x: conv(x, graph).sum())(X)
    again = pickle.loads(pickle.dumps(graph))
    assert torch.equal(conv(X, again), conv(X, graph))
    tensor_cache.clear()


@pytest.mark.parametrize("shared", [True, False])
def test_autocast_gives_many_models_the_results_of_one(shared):
    conv = TemperGATConv(5, 4, heads=2, residual=True, bias=False)
    x = X if shared else torch.stack([X, X])

    def loss(values, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = functional_call(conv, values, (x, EDGES))
        return out.float().square().sum(), out

    both = vmap(grad(loss, (0, 1), has_aux=True), (0, None if shared else 0))
    found, many = both(copies(conv), x)
    one_loss, one = loss(dict(conv.named_parameters()), X)
    one_loss.backward()
    assert many.dtype == one.dtype == torch.bfloat16
    assert torch.allclose(many[1], one, rtol=0.05, atol=0.05)
    for name, p in conv.named_parameters():
        scale = p.grad.abs().max().item()
        assert torch.allclose(found[0][name][1], p.grad, atol=0.05 * scale), name


@needs_torch(2, 13, "Dynamo does not trace torch.func over our ops")
@pytest.mark.parametrize("backbone", LAYERS)
def test_transforms_of_layers_can_be_compiled(backbone):
    torch._dynamo.reset()
    conv = LAYERS[backbone](5, 4, dropout=0.5)

    def loss(values):
        out = functional_call(conv, values, (X, EDGES), {"dropout_seed": SEED})
        return out.square().sum() + gate_penalty(conv)

    step = vmap(grad(loss))
    found = torch.compile(step, fullgraph=True, backend="aot_eager")(copies(conv))
    gradients = step(copies(conv))
    # A bias of keys adds the same to all logits of a target: its gradient is rounding.
    scale = max(expected.abs().max().item() for expected in gradients.values())
    for name, expected in gradients.items():
        assert torch.allclose(found[name], expected, atol=1e-6 * scale), name


@pytest.mark.parametrize(
    "given",
    [
        "tensors",
        pytest.param("sparse features", marks=takes_classes),
        pytest.param("graph", marks=takes_classes),
    ],
)
def test_an_exported_training_pass_holds_torch_s_own_ops_only(given):
    class Training(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = build_model("temp_gated", 5, 8, 3, heads=2, dropout=0.5)

        def forward(self, x, edge_index, seed):
            return self.model(x, edge_index, dropout_seed=seed)

    x = SparseFeatures.from_torch(X.relu()) if given == "sparse features" else X
    edges = Graph(EDGES, 10) if given == "graph" else EDGES
    module = Training()
    program = torch.export.export(module, (x, edges, SEED), strict=False)
    assert not [n for n in program.graph.nodes if "tempergat" in str(n.target)]
    out = program.module()(x, edges, SEED)
    assert torch.allclose(out, module(x, edges, SEED), atol=1e-5)


def test_forward_mode_drops_what_reverse_mode_drops():
    ones = torch.ones(6, 5)
    with forward_ad.dual_level(), torch.no_grad():
        out = dropout(forward_ad.make_dual(ones, 2 * ones), 0.5, SEED)
        tangent = forward_ad.unpack_dual(out).tangent
    assert torch.equal(tangent, random.dropout(2 * ones, 0.5, SEED))


def test_a_tangent_that_reaches_a_kernel_is_refused():
    x = X.clone().requires_grad_()
    out = TemperGATConv(5, 4)(x, EDGES)
    with forward_ad.dual_level():
        ones = torch.ones_like(out)
        with pytest.raises(RuntimeError, match="forward-mode"):
            torch.autograd.grad(out, x, forward_ad.make_dual(ones, ones))
    conv = TemperGATConv(5, 4)
    _, backward = vjp(lambda x: conv(x, EDGES), X)
    with pytest.raises(RuntimeError, match="forward-mode"):
        jvp(backward, (ones,), (ones,))
