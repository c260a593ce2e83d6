"""The GPU kernels against the reference, by name, and inside torch's machinery."""

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.utils.checkpoint import checkpoint

from tempergat import ops
from tempergat.ops import Graph, Rows, backend
from tempergat.ops.gpu import schedule as gpu_schedule
from tempergat.ops.random import keep_mask
from tests.support.attention_cases import (
    GRAPHS,
    Settings,
    by_kernel,
    by_torch,
    compare,
    in_order,
    make_inputs,
    padded,
    results,
)

pytestmark = pytest.mark.gpu
KINDS = ["gat", "gatv2"]
EVERY_KIND = [*KINDS, "dot_product"]
HALF = [torch.bfloat16, torch.float16]
EVERYTHING = Settings(edge=True, dropout=0.4, weights=True)


@pytest.fixture(name="poisoned")
def poison_new_memory() -> Iterator[None]:
    """Fills what torch allocates without initialising it with NaN."""
    torch.use_deterministic_algorithms(True)
    assert torch.zeros(1, device="cuda").new_empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


def compare_in_precision(
    kind: str, graph: Graph, heads: int, channels: int, dtype: Any, options: Settings
) -> None:
    """Asserts at most twice the error of PyTorch with everything in that precision."""
    where = torch.device("cuda")
    inputs = make_inputs(kind, graph, heads, channels, dtype, options)
    inputs = {name: x.to(where) for name, x in inputs.items()}
    graph = graph.to(where)
    given = in_order(kind, inputs)
    assert ops.explain(graph, given[0], *given[1:], attention=kind).backend == "gpu"
    seed = torch.randint(-(2**63), 2**63 - 1, (heads,), device=where)
    incoming = (
        torch.randn(graph.num_dst, heads, channels, device=where).to(dtype),
        torch.randn(graph.src.numel(), heads, device=where).to(dtype),
    )
    rest = (options, seed, incoming)

    call = by_torch(kind)
    fast = results(kind, by_kernel(kind, options.weights), graph, inputs, *rest)
    rounded = {name: x.to(dtype) for name, x in inputs.items()}
    same = results(kind, call, graph, rounded, *rest)
    exact = {name: x.double() for name, x in inputs.items()}
    for name, truth in results(kind, call, graph, exact, *rest).items():
        if truth.numel() == 0:
            continue
        error = (fast[name].double() - truth).abs().max()
        allowed = (same[name].double() - truth).abs().max()
        # Sums that cancel are held to the size of what is summed, about one.
        floor = 16 * torch.finfo(dtype).eps * truth.abs().max().clamp(min=1)
        assert error <= 2 * allowed + floor, (
            f"{name}: error {error:.3g}, PyTorch's is {allowed:.3g}"
        )


def power_law(num_nodes: int, num_edges: int, device: str = "cuda") -> Graph:
    generator = torch.Generator().manual_seed(num_edges)
    heavy = torch.rand(num_edges, generator=generator).pow(4).mul(num_nodes).long()
    other = torch.randint(num_nodes, (num_edges,), generator=generator)
    edges = torch.cat([torch.stack([heavy, other]), torch.stack([other, heavy])], 1)
    return Graph(edges, num_nodes, self_loops=True).to(device)


def arguments_of(kind: str, graph: Graph, heads: int, channels: int) -> list[Tensor]:
    inputs = make_inputs(kind, graph, heads, channels, torch.float32, Settings())
    return [x.cuda().requires_grad_() for x in inputs.values()]


def run(kind: str, graph: Graph, arguments: list[Tensor], **options: Any) -> Tensor:
    assert ops.explain(graph, *arguments, attention=kind).backend == "gpu"
    return ops.attend(kind, graph, *arguments, **options)[0]


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_edges_have_weights_and_biases_and_graphs_have_copies(
    kind: str, copies: int
) -> None:
    options = Settings(edge=True, edge_weight=True, edge_bias=True, dropout=0.4)
    for graph, shared in ((GRAPHS["hub"](), True), (power_law(300, 900, "cpu"), False)):
        given = options._replace(shared_edges=shared, weights=not shared)
        compare(kind, graph.repeat(copies), 3, 8, torch.float32, given, "gpu")


@pytest.mark.parametrize("heads", [2, 12])
@pytest.mark.parametrize("width", [1, 8, 20])
def test_dot_products_with_edge_features(heads: int, width: int) -> None:
    options = Settings(edge_width=width, dropout=0.4, weights=True, theta="head")
    graph = power_law(300, 900, "cpu")
    compare("dot_product", graph, heads, 8, torch.float32, options, "gpu")
    compare_in_precision("dot_product", graph, heads, 8, torch.bfloat16, options)


def test_keys_and_values_may_be_halves_of_one_row() -> None:
    graph = power_law(300, 2000)
    both = torch.randn(300, 2 * 64, device="cuda", requires_grad=True)
    query = torch.randn(300, 4, 16, device="cuda")
    halves = [x.view(300, 4, 16) for x in both.chunk(2, dim=1)]
    copies = [x.contiguous() for x in halves]
    out, _ = ops.dot_product(graph, query, *halves)
    expected, _ = ops.dot_product(graph, query, *copies)
    assert torch.equal(out, expected)
    (found,) = torch.autograd.grad(out.sin().sum(), both, retain_graph=True)
    (wanted,) = torch.autograd.grad(expected.sin().sum(), both)
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("heads", "channels", "width"), [(8, 16, 8), (3, 7, 5), (4, 64, 16)]
)
def test_edge_features_are_projected_by_the_kernels(
    heads: int, channels: int, width: int, dtype: Any
) -> None:
    torch.manual_seed(0)
    options = Settings(edge_width=width, dropout=0.4, weights=True)
    graph, shape = GRAPHS["self_loops"](), (heads, channels, dtype, options)
    if dtype == torch.float32:
        compare("gatv2", graph, *shape, "gpu")
    else:
        compare_in_precision("gatv2", graph, *shape)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_result_is_as_exact_as_pytorch(kind: str, graph: str) -> None:
    compare(kind, GRAPHS[graph](), 3, 5, torch.float32, Settings(), "gpu")
    compare_in_precision(kind, GRAPHS[graph](), 2, 16, torch.float32, EVERYTHING)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_half_precision_is_as_exact_as_pytorch_in_it(
    kind: str, dtype: Any, graph: str
) -> None:
    compare_in_precision(kind, GRAPHS[graph](), 3, 5, dtype, Settings())
    compare_in_precision(kind, GRAPHS[graph](), 2, 16, dtype, EVERYTHING)


@pytest.mark.parametrize("temperature", [0.1, 0.01, 0.001])
def test_gat_is_as_exact_as_pytorch_at_extreme_logits(temperature: float) -> None:
    graph = Graph(torch.randint(300, (2, 4000)), 300)
    for dropout in (0.0, 0.5):
        options = Settings(temperature=temperature, dropout=dropout)
        compare_in_precision("gat", graph, 4, 16, torch.float32, options)


@pytest.mark.parametrize("kind", KINDS)
def test_more_models_at_once_need_no_further_compilation(kind: str) -> None:
    launch = importlib.import_module("tempergat.ops.gpu.launching.launch")
    graph, counts = power_law(300, 2000), []
    for heads in (80, 400):
        arguments = arguments_of(kind, graph, heads, 8)
        run(kind, graph, arguments).sum().backward()
        counts.append(len(launch._compiled))
    assert counts[0] == counts[1]


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("channels", [1, 7, 32, 65, 600])
@pytest.mark.parametrize("heads", [1, 5, 50])
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_any_number_of_heads_and_channels(kind: str, heads: int, channels: int) -> None:
    graph = GRAPHS["self_loops"]()
    options = Settings(dropout=0.5)
    compare(kind, graph, heads, channels, torch.float32, options, "gpu")
    compare_in_precision(kind, graph, heads, channels, torch.bfloat16, options)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize(
    "options",
    [
        Settings(edge=True),
        Settings(targets=None),
        Settings(targets=None, theta="head"),
        Settings(targets="shared", theta="layer"),
        Settings(theta="head"),
        Settings(weights=True),
        Settings(weights=True, dropout=0.6),
        Settings(edge=True, dropout=0.9),
        Settings(negative_slope=0.0),
        Settings(negative_slope=-0.5),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_option_and_its_gradients(kind: str, options: Settings) -> None:
    compare(kind, power_law(300, 4000, "cpu"), 4, 8, torch.float32, options, "gpu")


@pytest.mark.usefixtures("poisoned")
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_drawn_graphs_and_options(data: Any) -> None:
    sources, targets = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12))
    ends = st.tuples(st.integers(0, sources - 1), st.integers(0, targets - 1))
    edges = data.draw(st.lists(ends, max_size=60))
    index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    graph = Graph(index, (sources, targets), self_loops=data.draw(st.booleans()))
    options = Settings(
        edge=data.draw(st.booleans()),
        targets=data.draw(st.sampled_from([None, "own"])),
        theta=data.draw(st.sampled_from([None, "layer", "head"])),
        dropout=data.draw(st.sampled_from([0.0, 0.5])),
        weights=data.draw(st.booleans()),
    )
    # Few shapes: each is compiled.
    heads, channels = data.draw(st.sampled_from([(3, 5), (2, 16)]))
    kind = data.draw(st.sampled_from(EVERY_KIND))
    compare(kind, graph, heads, channels, torch.float32, options, "gpu")


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_hub_of_a_million_edges(kind: str) -> None:
    many = 1_000_000
    spokes = torch.arange(many) % 1000
    centre = torch.zeros(many, dtype=torch.long)
    edges = torch.cat([torch.stack([spokes, centre]), torch.stack([centre, spokes])], 1)
    compare(kind, Graph(edges, 1000), 2, 8, torch.float32, Settings(), "gpu")


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_more_rows_than_programs(kind: str) -> None:
    graph = power_law(60_000, 200_000, "cpu")
    compare(kind, graph, 4, 8, torch.float32, Settings(), "gpu")


@pytest.mark.parametrize("kind", KINDS)
def test_the_dropout_mask_is_the_reference_s(kind: str) -> None:
    graph = power_law(500, 3000)
    arguments = arguments_of(kind, graph, 3, 8)
    seed = torch.tensor([1, -(2**62), 2**40], device="cuda")
    settings_ = {"dropout": 0.3, "dropout_seed": seed, "return_weights": True}
    _, weights = getattr(ops, kind)(graph, *arguments, **settings_)
    kept = keep_mask(seed, graph.edge_id.unsqueeze(-1), 0.3)
    assert torch.equal(weights != 0, kept)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_hundred_runs_agree_bit_by_bit(kind: str) -> None:
    graph = power_law(20_000, 200_000)
    arguments = arguments_of(kind, graph, 4, 32)
    dout = torch.randn(graph.num_dst, 4, 32, device="cuda")
    seed = torch.arange(4, device="cuda")
    first: list[Tensor] = []
    for _ in range(100):
        out = run(kind, graph, arguments, dropout=0.2, dropout_seed=seed)
        found = [out.detach(), *torch.autograd.grad(out, arguments, dout)]
        first = first or found
        assert all(torch.equal(a, b) for a, b in zip(first, found, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_wide_indices_give_the_same_bits(kind: str) -> None:
    narrow, wide = power_law(500, 9000), power_law(500, 9000)
    wide._by_target = Rows(*(t.long() for t in wide.by_target))
    wide._by_source = Rows(*(t.long() for t in wide.by_source))
    arguments = arguments_of(kind, narrow, 2, 8)
    dout = torch.randn(500, 2, 8, device="cuda")
    found = [
        torch.autograd.grad(run(kind, graph, arguments), arguments, dout)
        for graph in (narrow, wide)
    ]
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_more_than_two_billion_elements(kind: str) -> None:
    rows, heads, channels = 8_400_000, 4, 64
    assert rows * heads * channels > 2**31
    last = torch.arange(rows - 100, rows)
    edges = torch.stack([last, torch.arange(100) % 7])
    large = Graph(edges, (rows, 7)).to("cuda")
    small = Graph(edges - torch.tensor([[rows - 100], [0]]), (100, 7)).to("cuda")
    z = torch.zeros(rows, heads, channels, device="cuda", dtype=torch.bfloat16)
    z[-100:] = torch.randn(100, heads, channels, device="cuda").bfloat16()
    if kind == "gat":
        rest = short = [torch.randn(heads, channels, device="cuda")]
    else:
        z_dst = torch.randn(7, heads, channels, device="cuda").bfloat16()
        rest = short = [z_dst, torch.randn(heads, channels, device="cuda")]
    z.requires_grad_()
    few = z.detach()[-100:].clone().requires_grad_()
    out = run(kind, large, [z, *rest])
    expected = run(kind, small, [few, *short])
    assert torch.equal(out, expected)
    dout = torch.randn_like(out)
    (dz,) = torch.autograd.grad(out, z, dout)
    (dfew,) = torch.autograd.grad(expected, few, dout)
    assert torch.equal(dz[-100:], dfew)
    assert not dz[:-100].any()


@pytest.mark.parametrize("known", [True, False], ids=["scheduled", "unscheduled"])
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_cuda_graph_replays_forward_and_backward(kind: str, known: bool) -> None:
    graph = power_law(400, 5000)
    arguments = arguments_of(kind, graph, 2, 16)
    dout = torch.randn(400, 2, 16, device="cuda")
    # Compiles the kernels; on other rows, so that the graph stays unscheduled.
    warm = graph if known else power_law(400, 5000)
    torch.autograd.grad(run(kind, warm, arguments), arguments, dout)
    _ = graph.by_target, graph.by_source
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        leaves = [x.detach().requires_grad_() for x in arguments]
        out = run(kind, graph, leaves)
        found = torch.autograd.grad(out, leaves, dout)
    kept = gpu_schedule._made.find(graph.by_target.pointer, "schedule")
    assert (kept is not None) == known
    with torch.no_grad():
        for x in arguments:
            x.normal_()
    recorded.replay()
    fresh = run(kind, graph, arguments)
    expected = torch.autograd.grad(fresh, arguments, dout)
    torch.testing.assert_close(out, fresh)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_vmap_over_models_equals_a_loop(kind: str) -> None:
    graph = power_law(200, 1500)
    single = arguments_of(kind, graph, 2, 8)
    batch = [torch.randn(5, *x.shape, device="cuda") for x in single]
    together = vmap(lambda *a: ops.attend(kind, graph, *a)[0])(*batch)
    alone = [run(kind, graph, [x[i] for x in batch]) for i in range(5)]
    torch.testing.assert_close(together, torch.stack(alone))

    def loss(*a: Tensor) -> Tensor:
        return ops.attend(kind, graph, *a)[0].square().sum()

    every = tuple(range(len(batch)))
    together = vmap(grad(loss, argnums=every))(*batch)
    for i in range(5):
        expected = grad(loss, argnums=every)(*(x[i] for x in batch))
        for a, b in zip(together, expected, strict=True):
            torch.testing.assert_close(a[i], b, atol=1e-4, rtol=1e-4)


class _Model(torch.nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.weight = torch.nn.Linear(12, 32)
        self.att = torch.nn.Parameter(torch.randn(4, 8))

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        z = self.weight(x).view(-1, 4, 8)
        if self.kind == "gat":
            out = ops.gat(graph, z, self.att, self.att)[0]
        else:
            out = ops.gatv2(graph, z, z, self.att)[0]
        return out.flatten(1)


@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_equals_eager(kind: str) -> None:
    graph, x = power_law(300, 2000), torch.randn(300, 12, device="cuda")
    _ = graph.by_target, graph.by_source
    model = _Model(kind).cuda()
    parameters = tuple(model.parameters())
    expected = model(x, graph)
    compiled = torch.compile(model, fullgraph=True)(x, graph)
    torch.testing.assert_close(compiled, expected)
    for a, b in zip(
        torch.autograd.grad(compiled.square().sum(), parameters),
        torch.autograd.grad(expected.square().sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(a, b, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_checkpointing_gives_the_same_gradients(kind: str) -> None:
    graph, x = power_law(300, 2000), torch.randn(300, 12, device="cuda")
    model = _Model(kind).cuda()
    parameters = tuple(model.parameters())
    plain = torch.autograd.grad(model(x, graph).square().sum(), parameters)
    again = checkpoint(model, x, graph, use_reentrant=False)
    again = torch.autograd.grad(again.square().sum(), parameters)
    for a, b in zip(plain, again, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_autocast_stores_features_in_bfloat16(kind: str) -> None:
    graph, x = power_law(300, 2000), torch.randn(300, 12, device="cuda")
    model = _Model(kind).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        out = model(x, graph)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), model(x, graph), atol=0.05, rtol=0.05)
    out.float().square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_training_follows_the_reference(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, x = power_law(300, 2000), torch.randn(300, 12, device="cuda")
    goal = torch.randn(300, 32, device="cuda")
    first = _Model(kind).cuda()
    curves = []
    for name in ("gpu", "reference"):
        if name == "reference":
            monkeypatch.setattr(backend, "BACKENDS", ())
        model = _Model(kind).cuda()
        model.load_state_dict(first.state_dict())
        optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
        curve = []
        for _ in range(40):
            optimiser.zero_grad()
            out = functional_call(model, dict(model.named_parameters()), (x, graph))
            loss = (out - goal).square().mean()
            loss.backward()
            optimiser.step()
            curve.append(float(loss.detach()))
        assert ops.explain(graph, x.view(300, 3, 4)).backend == name
        curves.append(torch.tensor(curve))
    assert curves[0][-1] < curves[0][0]
    torch.testing.assert_close(*curves, atol=1e-4, rtol=1e-4)


def test_what_cannot_be_served_is_refused_with_the_reason() -> None:
    graph = power_law(50, 100)
    z = torch.zeros(50, 2, 4, device="cuda")
    assert ops.explain(graph, z).backend == "gpu"
    for wrong, reason in [
        (z.double(), "torch.float64 is not among"),
        (z[:, :, :0], "z is empty"),
        (torch.zeros(50, 1, 8193, device="cuda"), "8193 channels"),
    ]:
        choice = ops.explain(graph, wrong)
        assert choice.backend == "reference"
        assert reason in choice.refused["gpu"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wide", [0, 1, 2, 3])
def test_one_float64_argument_is_served_by_the_reference(kind: str, wide: int) -> None:
    graph = GRAPHS["random"]()
    inputs = make_inputs(kind, graph, 2, 4, torch.float32, Settings(edge=True))
    arguments = [x.cuda() for x in inputs.values()]
    arguments[wide] = arguments[wide].double()
    graph = graph.to("cuda")
    choice = ops.explain(graph, *arguments, attention=kind)
    assert choice.backend == "reference"
    assert "float64" in choice.refused["gpu"]
    out, _ = getattr(ops, kind)(graph, *arguments)
    given = padded(kind, arguments)
    expected, _ = by_torch(kind)(graph, *given, 0.2, 0.0, None)
    # The reference adds on CUDA in any order.
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives_are_those_of_the_reference(kind: str) -> None:
    graph = power_law(50, 100)
    arguments = [x.detach() for x in arguments_of(kind, graph, 2, 4)]
    seeds = torch.tensor([3, 4], device="cuda")

    def plain(z: Tensor) -> Tensor:
        given = padded(kind, [z, *arguments[1:]])
        return by_torch(kind)(graph, *given, 0.2, 0.5, seeds)[0]

    def fused(z: Tensor) -> Tensor:
        return run(kind, graph, [z, *arguments[1:]], dropout=0.5, dropout_seed=seeds)

    found = []
    for attend in (fused, plain):
        z = arguments[0].detach().requires_grad_()
        (dz,) = torch.autograd.grad(attend(z).square().sum(), z, create_graph=True)
        found.append(torch.autograd.grad(dz.square().sum(), z)[0])
    scale = found[1].abs().max().item()
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("kind", KINDS)
def test_alignment_of_the_features_changes_nothing(kind: str) -> None:
    graph = power_law(200, 1000)
    arguments = [x.detach() for x in arguments_of(kind, graph, 2, 8)]
    found = []
    # The second time with a kernel that was compiled for aligned features.
    for offset in (0, 0, 1):
        moved = []
        for x in arguments:
            buffer = torch.empty(x.numel() + offset, device="cuda")
            moved.append(buffer[offset:].view(x.shape).copy_(x).requires_grad_())
        assert (moved[0].data_ptr() % 16 == 0) == (offset == 0)
        out = run(kind, graph, moved)
        found.append([out, *torch.autograd.grad(out.sum(), moved)])
    for again in found[1:]:
        for got, want in zip(again, found[0], strict=True):
            torch.testing.assert_close(got, want)


def test_a_seed_on_another_device_is_refused_in_words() -> None:
    graph = power_law(50, 100)
    arguments = arguments_of("gat", graph, 2, 4)
    for _ in range(2):
        with pytest.raises(ValueError, match="from one device"):
            run(
                "gat", graph, arguments, dropout=0.5, dropout_seed=torch.zeros(2).long()
            )
