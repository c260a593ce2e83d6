"""The penalty is the sum over layers of the mean gate, whatever runs the layers."""

import copy
import gc
import pickle
import weakref

import pytest
import torch
import torch._dynamo.testing
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.utils.checkpoint import checkpoint

from tempergat import Graph
from tempergat.nn import (
    TemperGATConv,
    TemperGATv2Conv,
    build_model,
    gate_penalty,
)
from tests.support.layers import LAYERS

X = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
EDGES = torch.randint(0, 7, (2, 25), generator=torch.Generator().manual_seed(1))


def two_layers(gate="post"):
    first = TemperGATConv(5, 5, heads=2, concat=False, gate=gate)
    return torch.nn.ModuleList([first, TemperGATv2Conv(5, 5, gate=gate)])


def run(layers, x=X):
    hidden = layers[0](x, EDGES)
    return layers[1](hidden, EDGES), hidden


@pytest.mark.parametrize("gate", ["post", "first", "head"])
def test_penalty_is_the_sum_over_layers_of_the_mean_gate(gate):
    layers = two_layers(gate)
    _, hidden = run(layers)
    expected = layers[0].gate_values(X).mean() + layers[1].gate_values(hidden).mean()
    assert torch.allclose(gate_penalty(layers), expected)


def test_penalty_has_the_gradient_of_the_mean_gate():
    layers = two_layers()
    run(layers)
    gate_penalty(layers).backward()
    ours = layers[0].lin_gate.weight.grad.clone()
    layers.zero_grad()
    _, hidden = run(layers)
    mean = layers[0].gate_values(X).mean() + layers[1].gate_values(hidden).mean()
    mean.backward()
    assert torch.allclose(ours, layers[0].lin_gate.weight.grad)


def test_without_gates_the_penalty_is_zero():
    layers = two_layers(gate=None)
    run(layers)
    assert gate_penalty(layers).item() == 0.0
    assert gate_penalty(torch.nn.ReLU()).item() == 0.0


def test_taking_the_penalty_clears_it():
    layers = two_layers()
    run(layers)
    assert gate_penalty(layers).item() > 0
    assert gate_penalty(layers).item() == 0.0


def test_a_second_pass_replaces_the_first():
    conv = TemperGATConv(5, 5)
    hidden = conv(X, EDGES)
    conv(hidden, EDGES)
    assert torch.allclose(gate_penalty(conv), conv.gate_values(hidden).mean())


@pytest.mark.parametrize("gate", ["first", "post", "head"])
@pytest.mark.parametrize("backbone", LAYERS)
def test_gates_of_both_sides_or_of_the_targets_are_averaged(backbone, gate):
    conv = LAYERS[backbone]((5, 3), 4, gate=gate, add_self_loops=False)
    x = (X, torch.randn(2, 3))
    conv(x, torch.tensor([[0, 6], [0, 1]]))
    gates = conv.gate_values(x)
    gates = torch.cat(gates) if gate == "first" else gates
    assert torch.allclose(gate_penalty(conv), gates.mean())


@pytest.mark.parametrize("gate", ["first", "post", "head"])
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("backbone", LAYERS)
def test_rows_that_are_padding_do_not_count(backbone, heads, gate):
    conv = LAYERS[backbone](5, 4, heads, gate=gate)
    graph = Graph(EDGES, len(X), self_loops=backbone != "transformer")
    graph.in_use = (torch.tensor(3), torch.tensor(3))
    conv(X, graph)
    assert torch.allclose(gate_penalty(conv), conv.gate_values(X[:3]).mean())


def test_half_precision_gates_are_averaged_in_single():
    conv = TemperGATConv(5, 64, heads=8).bfloat16()
    conv(X.bfloat16(), EDGES)
    penalty = gate_penalty(conv)
    assert penalty.dtype == torch.float32
    exact = conv.gate_values(X.bfloat16()).double().mean()
    assert torch.allclose(penalty.double(), exact, rtol=1e-5)


def test_an_evaluation_without_gradients_in_between_changes_nothing():
    layers = two_layers()
    _, hidden = run(layers)
    expected = layers[0].gate_values(X).mean() + layers[1].gate_values(hidden).mean()
    layers.eval()
    with torch.no_grad():
        run(layers, 10 * X)
    layers.train()
    assert torch.allclose(gate_penalty(layers), expected)


def test_means_are_in_no_state_copy_or_pickle():
    layers = two_layers()
    keys = set(layers.state_dict())
    run(layers)
    assert set(layers.state_dict()) == keys
    assert gate_penalty(copy.deepcopy(layers)).item() == 0.0
    assert gate_penalty(pickle.loads(pickle.dumps(layers))).item() == 0.0
    assert gate_penalty(layers).item() > 0


def test_passes_without_a_penalty_do_not_keep_their_inputs():
    conv = TemperGATConv(5, 5)
    inputs = []
    for _ in range(10):
        # Autograd saves the input of the linear maps, as long as it keeps the graph.
        x = X.clone().requires_grad_()
        conv(x, EDGES)
        inputs.append(weakref.ref(x))
    del x
    gc.collect()
    assert sum(reference() is not None for reference in inputs) <= 1


@pytest.mark.parametrize("gate", ["post", "first"])
def test_a_step_with_a_penalty_leaks_no_memory(gate):
    conv = TemperGATConv(5, 5, gate=gate)
    x = X.clone().requires_grad_()
    freed = weakref.ref(x)
    out = conv(x, EDGES)
    penalty = gate_penalty(conv)
    (out.sum() + penalty).backward()
    assert conv.lin_gate.weight.grad is not None
    del x, out, penalty
    gc.collect()
    assert freed() is None


def test_a_call_in_evaluation_counts_when_there_is_no_other():
    conv = TemperGATConv(5, 5).eval()
    conv(X, EDGES)
    conv(3 * X, EDGES)
    assert torch.allclose(gate_penalty(conv), conv.gate_values(3 * X).mean())


def test_checkpointing_does_not_count_a_call_twice():
    layers = two_layers()
    expected, hidden = run(layers)
    expected_penalty = gate_penalty(layers)
    (expected.sum() + expected_penalty).backward()
    gradient = layers[0].lin_gate.weight.grad.clone()
    layers.zero_grad()

    hidden = checkpoint(layers[0], X, EDGES, use_reentrant=False)
    out = checkpoint(layers[1], hidden, EDGES, use_reentrant=False)
    penalty = gate_penalty(layers)
    assert torch.allclose(penalty, expected_penalty)
    (out.sum() + penalty).backward()
    assert torch.allclose(layers[0].lin_gate.weight.grad, gradient, atol=1e-6)
    assert gate_penalty(layers).item() == 0.0


def test_a_penalty_lost_to_reentrant_checkpointing_gives_a_warning():
    layers = two_layers()
    x = X.clone().requires_grad_()
    checkpoint(layers[0], x, EDGES, use_reentrant=True)
    with pytest.warns(UserWarning, match="use_reentrant=False"):
        assert gate_penalty(layers).item() == 0.0
    run(layers)
    gate_penalty(layers)


def test_under_compile_the_penalty_and_its_gradient_are_the_same():
    layers = two_layers()
    out, _ = run(layers)
    expected = gate_penalty(layers)
    (out.sum() + expected).backward()
    gradient = layers[0].lin_gate.weight.grad.clone()

    compiled = torch.compile(
        lambda x: run(layers, x)[0], fullgraph=True, backend="eager"
    )
    for _ in range(3):
        layers.zero_grad()
        out = compiled(X)
        penalty = gate_penalty(layers)
        assert torch.allclose(penalty, expected)
        (out.sum() + penalty).backward()
        assert torch.allclose(layers[0].lin_gate.weight.grad, gradient, atol=1e-6)


def test_compiled_training_without_the_penalty_does_not_compile_forever():
    torch._dynamo.reset()
    conv = TemperGATConv(5, 5)
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(lambda x: conv(x, EDGES), fullgraph=True, backend=counter)
    for _ in range(12):
        compiled(X).sum().backward()
    assert counter.frame_count <= 5
    assert gate_penalty(conv).item() > 0


def penalised_loss(model, params, buffers, x):
    out = functional_call(model, (params, buffers), (x, EDGES))
    return out.pow(2).mean() + gate_penalty(model)


@pytest.mark.parametrize("method", ["temp_gated", "gated_temp_v2"])
def test_inside_vmap_of_grad_each_model_has_its_own_penalty(method):
    models = [build_model(method, 5, 8, 3, heads=2) for _ in range(3)]
    params, buffers = stack_module_state(models)
    base = copy.deepcopy(models[0])

    gradients = vmap(grad(lambda p, b: penalised_loss(base, p, b, X)))(params, buffers)
    for i, model in enumerate(models):
        (model(X, EDGES).pow(2).mean() + gate_penalty(model)).backward()
        for name, parameter in model.named_parameters():
            expected = parameter.grad
            assert torch.allclose(gradients[name][i], expected, atol=1e-6), name


def test_the_last_pass_inside_a_transform_counts():
    conv = TemperGATConv(5, 5)
    values = {name: p.detach() for name, p in conv.named_parameters()}

    def penalty(values):
        for scale in range(1, 4):
            functional_call(conv, values, (scale * X, EDGES))
        return gate_penalty(conv)

    gate = conv.gate_values(3 * X).mean()
    assert torch.allclose(penalty(values), gate)
    expected = torch.autograd.grad(gate, conv.lin_gate.weight)[0]
    found = grad(penalty)(values)["lin_gate.weight"]
    assert torch.allclose(found, expected, atol=1e-6)


def test_a_transform_that_ignores_the_penalty_leaves_no_state():
    models = [build_model("temp_gated", 5, 8, 3, heads=2) for _ in range(3)]
    params, buffers = stack_module_state(models)
    base = models[0]

    def loss(p, b):
        return functional_call(base, (p, b), (X, EDGES)).sum()

    vmap(grad(loss))(params, buffers)
    base(X, EDGES)
    alone = gate_penalty(base)
    base(X, EDGES)
    assert torch.allclose(gate_penalty(base), alone)
    vmap(grad(loss))(params, buffers)
    gradients = vmap(grad(lambda p, b: penalised_loss(base, p, b, X)))(params, buffers)
    assert all(torch.isfinite(g).all() for g in gradients.values())
