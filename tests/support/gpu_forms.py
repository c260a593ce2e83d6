"""Calls that launch every GPU kernel in the forms that layers and training use.

They go through the same functions as real calls, with tensors of the CPU and nothing
computed, so that no GPU is needed.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import torch

from tempergat.ops import gpu
from tempergat.ops.calls import Backward, Forward, Saved
from tempergat.ops.features.sparse import SparseFeatures
from tempergat.ops.gpu import gatv2_forward, sampling
from tempergat.ops.gpu import schedule as schedules
from tempergat.ops.gpu.launching.dry_run import launch_kernels
from tempergat.ops.gpu.launching.launch import compile_only
from tempergat.ops.gpu.launching.precompile import CompileRequest
from tempergat.sampling import Topology
from tests.support.attention_cases import GRAPHS, NAMES, Settings, in_order, make_inputs

ATTENTIONS = ("gat", "gatv2", "dot_product")
SINGLE, HALF = torch.float32, torch.bfloat16
EVERYTHING = {"dropout": True, "gate": True, "edge": True, "learnt": True}


class Form(NamedTuple):
    """A compiled kernel that some call needs.

    Attributes:
        kernel: The kernel, as decorated by Triton.
        name: Its module and its name.
        call: The first call that needs it, and its number there among those of the
            same kernel.
        types: The types of its tensors; None for an absent one.
        numbers: Its numbers; only their types count.
        constants: Its compile-time constants.
        warps: Warps of a program.
    """

    kernel: Any
    name: str
    call: str
    types: tuple[torch.dtype | None, ...]
    numbers: tuple[int | float, ...]
    constants: tuple[Any, ...]
    warps: int

    @property
    def features(self) -> tuple[Any, ...]:
        """What code it has: types and flags, without the sizes of tiles."""
        return features_of(self.name, self.types, self.constants)


def features_of(name: str, types: Any, constants: Any) -> tuple[Any, ...]:
    """`Form.features` of a launch."""
    return name, tuple(types), tuple(x for x in constants if isinstance(x, bool))


def name_of(kernel: Any) -> str:
    """The module of a kernel within `ops/gpu`, and its name."""
    module = kernel.fn.__module__.removeprefix(f"{gpu.__name__}.")
    return f"{module}.{kernel.fn.__name__.strip('_').removesuffix('_kernel')}"


def forms(cache_size: int = 50 * 2**20, quick: bool = False) -> list[Form]:
    """All forms of all kernels.

    Args:
        cache_size: The bytes of a card's second-level cache, on which tiles depend.
        quick: Whether one form with each combination of types is enough, of which
            float16 is none.
    """
    found: dict[tuple[Any, ...], Form] = {}

    def note(
        call: str, kernel: Any, types: Any, numbers: Any, constants: Any, warps: int
    ) -> None:
        facts = (tuple(types), numbers, constants, warps)
        kinds = tuple(type(x) for x in numbers)
        key = (name_of(kernel), facts[0], kinds, constants, warps)
        if key not in found:
            earlier = [f for f in found.values() if f.name == key[0]]
            count = sum(f.call.split(" #")[0] == call for f in earlier)
            label = f"{call} #{count + 1}" if count else call
            found[key] = Form(kernel, key[0], label, *facts)

    # Rows are cut, and nothing is read that was not computed.
    with (
        mock.patch.multiple(schedules, LONGEST=8, LONGEST_OF_SMALL=8),
        mock.patch.object(gatv2_forward, "_cache_size", return_value=cache_size),
    ):
        for call, run in calls():
            with compile_only(0, partial(note, call)):
                run()
    if quick:
        usual = [form for form in found.values() if torch.float16 not in form.types]
        return list({(form.name, form.types): form for form in usual}.values())
    return list(found.values())


def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The calls with their names."""
    for op in ATTENTIONS:
        request = partial(CompileRequest, op)
        for heads, channels, dtype, options in (
            (8, 8, SINGLE, {}),
            (4, 64, SINGLE, EVERYTHING),
            (1, 7, SINGLE, EVERYTHING),
            (4, 64, HALF, EVERYTHING),
            (4, 64, torch.float16, EVERYTHING),
        ):
            how = "everything" if options else "plain"
            wanted = request(heads, channels, dtype=dtype, **options)
            name = f"{op} {heads}x{channels} {str(dtype)[6:]} {how}"
            yield name, partial(launch_kernels, wanted)
        many = request(8, 8, models=10, nodes=3000, dropout=True, learnt=True)
        yield f"{op} 8x8 of 10 models", partial(launch_kernels, many)
        returned = request(8, 8, weights=True, training=False)
        yield f"{op} 8x8 evaluation", partial(launch_kernels, returned)
        yield from _attentions_of_edges(op)
    for group in (_features, _graphs, _samples):
        yield from group()


def _attentions_of_edges(op: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What requests do not have: weights and biases of edges, and copies of a graph."""
    every = {"edge_weight": True, "edge_bias": True, "weights": True, "dropout": 0.3}
    projected = {"edge_width": 3} if op != "gat" else {"edge": True}
    for heads, channels, dtype in ((4, 64, HALF), (1, 7, SINGLE)):
        run = partial(_attend, op, heads, channels, dtype)
        name = f"{op} {heads}x{channels} {str(dtype)[6:]}"
        options = Settings(**every, **projected, theta="head")
        yield f"{name} of copies", partial(run, options, copies=2)
    options = Settings(**every, theta="head")
    if op == "dot_product":
        yield f"{name} of weighted edges", partial(run, options)
    else:
        yield f"{name} of copies, no features", partial(run, options, copies=2)
        options = Settings(edge=True, targets="shared", **every)
        yield f"{name} of weighted edges", partial(run, options)
        unbiased = options._replace(edge_bias=False)
        yield f"{name} of unbiased edges", partial(run, unbiased)
    options = Settings(weights=True, dropout=0.3, targets="shared")
    yield f"{name} of returned weights", partial(run, options)
    options = options._replace(dropout=0.0)
    yield f"{name} without dropout", partial(run, options)
    options = Settings(weights=True, theta="layer", **projected)
    yield f"{name} of given features", partial(run, options, learns_edges=False)


def _attend(
    kind: str,
    heads: int,
    channels: int,
    dtype: torch.dtype,
    options: Settings,
    copies: int = 1,
    learns_edges: bool = True,
) -> None:
    graph = GRAPHS["hub"]().repeat(copies)
    inputs = make_inputs(kind, graph, heads, channels, dtype, options)
    seed = torch.zeros(heads, dtype=torch.int64) if options.dropout else None
    arguments, rows = tuple(in_order(kind, inputs)), (graph.by_target, graph.by_source)
    rest = (copies, (0.2,), options.dropout)
    kernels = gpu.kernels(kind)
    out, lse, weights, *state = kernels.forward(
        Forward(arguments, seed, *rows, *rest, options.weights)
    )
    saved = Saved(arguments, seed, out, lse, tuple(state), *rows)
    wanted = tuple(learns_edges or name != "edge_x" for name in NAMES[kind])
    kernels.backward(Backward(out, weights, saved, *rest, wanted))


def _features() -> Iterator[tuple[str, Callable[[], Any]]]:
    dropout, aggregate = gpu.kernels("dropout"), gpu.kernels("aggregate")
    gate, seeds = gpu.kernels("gate"), torch.arange(3)
    stored = SparseFeatures.from_torch(torch.eye(40).repeat(2, 1))
    for dtype in (SINGLE, HALF, torch.float16, torch.float64):
        name = str(dtype)[6:]
        if dtype != torch.float64:
            for columns in (64, 7) if dtype == SINGLE else (64,):
                x = torch.empty(90, columns, dtype=dtype)
                index = torch.zeros(5, dtype=torch.int32)
                run = partial(gpu.kernels("gather").run, x, index)
                yield f"gather of {columns} {name}", run
                x = x.view(90, 1, columns)
                for sets in (1, 3):
                    run = partial(dropout.run, x.expand(90, sets, columns), seeds, 0.5)
                    yield f"dropout of {columns} {name} in {sets} sets", run
                run = partial(dropout.run, x, seeds[:1], 0.5)
                yield f"dropout of {columns} {name}", run
            x = torch.empty(40, 64, dtype=dtype)
            part, bias = torch.empty(5), torch.empty(64, dtype=dtype)
            yield f"gate of {name}", partial(gate.forward, x, x)
            yield f"gate of {name} with bias", partial(gate.forward, x, x, bias)
            for sums in (None, part):
                end = "" if sums is None else " and its sums"
                yield (
                    f"gate of {name}, backward{end}",
                    partial(gate.backward, x, sums, x, x),
                )
            in_use = torch.zeros(1, dtype=torch.int32)
            yield f"padded gate of {name}", partial(gate.close, x, in_use)
        for channels in (64, 7) if dtype == SINGLE else (64,):
            x, values = (torch.empty(n, 3, channels, dtype=dtype) for n in (40, 80))
            values = values[:, :, 0]
            for known in ({"in_order": True}, {"skip_zeros": True}, {}):
                run = partial(aggregate.run, stored.by_node, values, x, **known)
                yield " ".join([f"aggregate of {channels} {name}", *known]), run
    yield "one seed for each", partial(dropout.seeds, torch.tensor(1), seeds)
    yield from _products()


def _products() -> Iterator[tuple[str, Callable[[], Any]]]:
    maps = gpu.importlib.import_module(f"{gpu.__name__}.edge_maps")
    for dtype in (SINGLE, HALF, torch.float16):
        narrow = ((64, 7), (7, 64), (7, 7))[: 3 if dtype == SINGLE else 1]
        for outs, width in ((64, 64), *narrow):
            of = f"{outs}x{width} {str(dtype)[6:]}"
            dout = torch.empty(3000, 2, 3, outs, dtype=dtype)
            x, edge_map = torch.empty(3000, 3, width), torch.empty(3, outs, width)
            for side in (dout[:, 0], dout[:, 0].contiguous()):
                spaced = "" if side.is_contiguous() else " with space"
                run = partial(gpu.kernels("outer").run, side, x)
                yield f"outer product of {of}{spaced}", run
                run = partial(maps.pull_back, side, edge_map)
                yield f"edge map of {of}{spaced}", run
            if dtype == SINGLE:
                out = torch.empty(3000, 3, outs)
                yield (
                    f"added edge map of {of}",
                    partial(maps.add_push, out, x, edge_map),
                )


def _graphs() -> Iterator[tuple[str, Callable[[], Any]]]:
    edges = gpu.kernels("edges")
    for dtype in (torch.int64, torch.int32):
        ends = torch.zeros(2, 300, dtype=dtype)
        for loops, both in ((0, False), (9, True)):
            name = f"edges in {str(dtype)[6:]}{' with self-loops' * (loops > 0)}"
            yield name, partial(edges.group_edges, ends, (9, 9), loops, both)
    plan = partial(torch.zeros, dtype=torch.int32)
    sums = plan(2, dtype=torch.int64)
    facts = ((9, 9), [(1, 5), (1, 5)], 8)
    yield (
        "edges of long rows",
        partial(edges._schedules, plan(18, 4), plan(32), sums, *facts),
    )


def _samples() -> Iterator[tuple[str, Callable[[], Any]]]:
    for fanout in ([15, 10], [5, -1], [70, 3]):
        for replace in (False, True):
            name = f"sample of {fanout}{' with repetition' * replace}"
            yield name, partial(_sample, fanout, replace)


def _sample(fanout: list[int], replace: bool) -> None:
    edges = torch.zeros(2, 300, dtype=torch.int64)
    relation = Topology.of(edges, 300).relation(0, 0)
    seeds, key = torch.arange(9), torch.zeros(1, dtype=torch.int64)
    made = sampling.sample([relation], [300], 0, seeds, [fanout], key, replace)
    source, target = made.source[0], made.target[0]
    for looped in (False, True):
        for loops in (None, sampling.loops_of(source, target)) if looped else (None,):
            batch = sampling.Batch(
                made.pointer[0], source, target, made.nodes[0], made.edges[0],
                len(fanout), loops,
            )  # fmt: skip
            for training in (False, True):
                sizes = sampling.Sizes(90, 40, 80)
                sampling.padded_graph(
                    batch, 0, sizes, self_loops=looped, training=training
                )
