"""Derivatives of derivatives: forces, gradient penalties, meta-learning."""

import pytest
import torch
from torch.func import functional_call, grad, hessian, vmap

from tempergat import ops
from tempergat.nn import build_model
from tempergat.ops.features.sparse import SparseFeatures
from tests.support.layers import LAYERS, PYG_LAYERS

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(6, 3, generator=GENERATOR, dtype=torch.float64)
TARGETS = torch.randn(4, 5, generator=GENERATOR, dtype=torch.float64)
EDGES = torch.randint(0, 6, (2, 14), generator=GENERATOR)
TO_FOUR = torch.stack([EDGES[0], EDGES[1] % 4])
ATTRIBUTES = torch.randn(14, 2, generator=GENERATOR, dtype=torch.float64)
SEED = torch.tensor(7)


def gradgrad(conv, x, *arguments, **options):
    """Checks second derivatives in the inputs and in every parameter."""
    names = [name for name, _ in conv.named_parameters()]
    leaves = [t.detach().clone().requires_grad_() for t in (*x, *conv.parameters())]

    def output(*leaves):
        features = leaves[0] if len(x) == 1 else leaves[: len(x)]
        parameters = dict(zip(names, leaves[len(x) :], strict=True))
        return functional_call(conv, parameters, (features, *arguments), options)

    return torch.autograd.gradgradcheck(output, leaves, fast_mode=True)


# The widths, further options of the layer and the features it is called with.
CASES = {
    "gate after attention": (3, {"temperature": "layer", "gate": "post"}, [X]),
    "gate first": (3, {"temperature": "head", "gate": "first"}, [X]),
    "gate of heads": (3, {"temperature": "head", "gate": "head"}, [X]),
    "no temperature": (3, {"temperature": None, "gate": "post"}, [X]),
    "no gate": (3, {"temperature": "layer", "gate": None}, [X]),
    "two maps of the same nodes": ((3, 3), {}, [X]),
    "bipartite": ((3, 5), {"add_self_loops": False}, [X, TARGETS]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("backbone", LAYERS)
def test_every_form_of_a_layer_has_second_derivatives(backbone, case):
    widths, options, x = CASES[case]
    conv = LAYERS[backbone](widths, 2, heads=2, **options).double()
    assert gradgrad(conv, x, TO_FOUR if len(x) == 2 else EDGES)


@pytest.mark.parametrize("backbone", LAYERS)
def test_edge_features_and_dropout_have_second_derivatives(backbone):
    conv = LAYERS[backbone](3, 2, heads=2, edge_dim=2, dropout=0.5).double()
    assert gradgrad(conv, [X], EDGES, ATTRIBUTES, dropout_seed=SEED)


@pytest.mark.parametrize("backbone", LAYERS)
def test_weights_may_depend_on_no_parameter_that_is_trained(backbone):
    conv = LAYERS[backbone](3, 2).double().requires_grad_(False)
    bias = conv.lin_gate.bias.requires_grad_()
    out, (_, weights) = conv(X, EDGES, return_attention_weights=True)
    alone = torch.autograd.grad(out.sin().sum(), bias, retain_graph=True)
    loss = out.sin().sum() + weights.sum()
    (found,) = torch.autograd.grad(loss, bias, create_graph=True)
    torch.testing.assert_close(found, alone[0])
    assert found.requires_grad


@pytest.mark.parametrize("backbone", LAYERS)
def test_returned_weights_have_second_derivatives(backbone):
    conv = LAYERS[backbone](3, 2, heads=2, dropout=0.5).double()

    def weights(x):
        options = {"return_attention_weights": True, "dropout_seed": SEED}
        out, (_, alpha) = conv(x, EDGES, **options)
        return out, alpha

    assert torch.autograd.gradgradcheck(weights, X.clone().requires_grad_())


@pytest.mark.parametrize("backbone", LAYERS)
def test_second_derivatives_keep_the_dropout_mask_of_the_first(backbone):
    conv = LAYERS[backbone](3, 2, heads=2, dropout=0.6).double()
    found = []
    for by_messages in (False, True):
        if by_messages:
            conv.register_message_forward_hook(lambda *_: None)
        x = X.clone().requires_grad_()
        out = conv(x, EDGES, dropout_seed=SEED)
        (dx,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(dx.square().sum(), x)[0])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("backbone", LAYERS)
def test_a_gradient_penalty_trains_as_with_pyg(backbone):
    theirs = PYG_LAYERS[backbone](3, 2, heads=2).double()
    ours = LAYERS[backbone](3, 2, heads=2, temperature=None, gate=None).double()
    ours.load_state_dict(theirs.state_dict())
    for conv in (theirs, ours):
        x = X.clone().requires_grad_()
        (dx,) = torch.autograd.grad(conv(x, EDGES).sum(), x, create_graph=True)
        (conv(x, EDGES).square().mean() + dx.square().mean()).backward()
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(ours.get_parameter(name).grad, parameter.grad)


def test_a_training_step_inside_a_training_step_works():
    model = build_model("temp_gated", 3, 4, 2, heads=2, dropout=0.5).double()
    parameters = {n: p.detach().clone() for n, p in model.named_parameters()}

    def loss(parameters):
        arguments = (X, EDGES)
        options = {"dropout_seed": SEED}
        return functional_call(model, parameters, arguments, options).square().mean()

    def after_a_step(rate):
        steps = grad(loss)(parameters)
        return loss({n: p - rate * steps[n] for n, p in parameters.items()})

    rate, tiny = torch.tensor(0.1, dtype=torch.float64), 1e-6
    difference = after_a_step(rate + tiny) - after_a_step(rate - tiny)
    torch.testing.assert_close(
        grad(after_a_step)(rate), difference / (2 * tiny), rtol=1e-5, atol=1e-8
    )


@pytest.mark.parametrize("backbone", LAYERS)
def test_torch_func_gives_second_and_third_derivatives(backbone):
    conv = LAYERS[backbone](3, 2).double()

    def loss(scale):
        return conv(scale * X, EDGES).square().sum()

    one = torch.ones((), dtype=torch.float64)
    expected = grad(grad(loss))(one)
    torch.testing.assert_close(hessian(loss)(one), expected)
    torch.testing.assert_close(vmap(grad(grad(loss)))(one.expand(2))[1], expected)
    tiny = 1e-5
    difference = grad(grad(loss))(one + tiny) - grad(grad(loss))(one - tiny)
    third = grad(grad(grad(loss)))(one)
    torch.testing.assert_close(third, difference / (2 * tiny), rtol=1e-6, atol=1e-6)


def test_sparse_features_have_second_derivatives_in_the_weights():
    dense = X.relu()
    sparse = SparseFeatures.from_torch(dense)
    weight = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    found = []
    for product in (
        lambda w: ops.sparse_linear(sparse, w),
        lambda w: dense @ w.t(),
    ):
        value = product(weight).pow(3).sum()
        (first,) = torch.autograd.grad(value, weight, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), weight)[0])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("backbone", LAYERS)
def test_a_gradient_that_may_be_differentiated_has_the_same_bits(backbone):
    conv = LAYERS[backbone](3, 2, heads=2, dropout=0.5)
    found = []
    for create_graph in (False, True):
        x = X.float().requires_grad_()
        out = conv(x, EDGES, dropout_seed=SEED).square().sum()
        found.append(torch.autograd.grad(out, x, create_graph=create_graph)[0])
    assert torch.equal(*found)
