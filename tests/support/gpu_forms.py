"""Calls that launch every GPU kernel in the forms that layers and training use.

They go through the same functions as real calls, with tensors of the CPU and nothing
computed, so that no GPU is needed.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import torch

from tempergat.ops import gpu
from tempergat.ops.calls import Backward, Forward, Saved
from tempergat.ops.features.sparse import SparseFeatures
from tempergat.ops.gpu import edge_maps, edges, gatv2_forward, sampling
from tempergat.ops.gpu import schedule as schedules
from tempergat.ops.gpu.launching.dry_run import launch_kernels
from tempergat.ops.gpu.launching.launch import compile_only
from tempergat.ops.gpu.launching.precompile import CompileRequest
from tempergat.sampling import Topology
from tests.support.attention_cases import GRAPHS, NAMES, Settings, in_order, make_inputs

SINGLE, HALF, FLOAT16 = torch.float32, torch.bfloat16, torch.float16
plan = partial(torch.zeros, dtype=torch.int32)
EVERYTHING = {"dropout": True, "gate": True, "edge": True, "learnt": True}


class Launch(NamedTuple):
    """What decides how a kernel is compiled: the arguments of `compile_kernel`."""

    kernel: Any
    types: tuple[torch.dtype | None, ...]
    numbers: tuple[int | float, ...]
    constants: tuple[Any, ...]
    warps: int

    @property
    def name(self) -> str:
        """The kernel's module within `ops/gpu`, and its name."""
        module = self.kernel.fn.__module__.removeprefix(f"{gpu.__name__}.")
        return f"{module}.{self.kernel.__name__.strip('_').removesuffix('_kernel')}"

    @property
    def features(self) -> tuple[Any, ...]:
        """What code it has: types and flags, without the sizes of tiles."""
        return self.name, self.types, *(x for x in self.constants if type(x) is bool)


def forms(
    cache_size: int = 50 * 2**20, quick: bool = False
) -> dict[tuple[str, str], Launch]:
    """All forms of all kernels.

    Args:
        cache_size: The bytes of a card's second-level cache, on which tiles depend.
        quick: Whether one form with each combination of types is enough, of which
            float16 is none.

    Returns:
        The forms by the kernel's name and the first call that needs this form, with its
        number among the forms of the same kernel in that call.
    """
    found: dict[tuple[Any, ...], tuple[tuple[str, str], Launch]] = {}
    counts: Counter[tuple[str, str]] = Counter()

    def receive(kernel: Any, types: Any, *rest: Any) -> None:
        launch = Launch(kernel, tuple(types), *rest)
        # Of numbers only the types count.
        key = (launch.name, *launch[1:2], *map(type, launch.numbers), *launch[3:])
        if key not in found:
            counts[launch.name, call] += 1
            count = counts[launch.name, call]
            label = f"{call} #{count}" if count > 1 else call
            found[key] = (launch.name, label), launch

    # Rows are cut, and nothing is read that was not computed.
    with (
        mock.patch.multiple(schedules, LONGEST=8, LONGEST_OF_SMALL=8),
        mock.patch.object(gatv2_forward, "_cache_size", return_value=cache_size),
        compile_only(0, receive),
    ):
        for call in _calls():  # noqa: B007 (`receive` reads it)
            pass
    if quick:
        usual = {(x.name, x.types): k for k, (_, x) in found.items()}
        return dict(found[k] for types, k in usual.items() if FLOAT16 not in types[1])
    return dict(found.values())


def _calls() -> Iterator[str]:
    """Names each call, and then makes it."""
    for op in ("gat", "gatv2", "dot_product"):
        request = partial(CompileRequest, op)
        for heads, channels, dtype, options in (
            (8, 8, SINGLE, {}),
            (4, 64, SINGLE, EVERYTHING),
            (1, 7, SINGLE, EVERYTHING),
            (4, 64, HALF, EVERYTHING),
            (4, 64, FLOAT16, EVERYTHING),
        ):
            how = "everything" if options else "plain"
            yield f"{op} {heads}x{channels} {str(dtype)[6:]} {how}"
            launch_kernels(request(heads, channels, dtype=dtype, **options))
        yield f"{op} 8x8 of 10 models"
        launch_kernels(request(8, 8, 10, 3000, dropout=True, learnt=True))
        yield f"{op} 8x8 evaluation"
        launch_kernels(request(8, 8, weights=True, training=False))
        yield from _attentions_of_edges(op)
    yield from _features()
    yield from _products()
    yield from _graphs()
    yield from _samples()


def _attentions_of_edges(op: str) -> Iterator[str]:
    """What requests do not have: weights and biases of edges, and copies of a graph."""
    every = partial(
        Settings, edge_weight=True, edge_bias=True, weights=True, dropout=0.3
    )
    projected = {"edge_width": 3} if op != "gat" else {"edge": True}
    theta = "head" if op == "dot_product" else None
    shared = {"targets": "shared", "edge": True, "theta": theta}
    plain = Settings(weights=True, dropout=0.3, targets="shared")
    yield f"{op} 4x64 bfloat16 of copies"
    _attend(op, every(**projected, theta="head"), 4, 64, HALF, copies=2)
    for name, options, more in (
        ("of copies", every(**projected, theta="head"), {"copies": 2}),
        ("of copies, no features", every(theta="head"), {"copies": 2}),
        ("of weighted edges", every(**shared), {}),
        ("of unbiased edges", every(**shared)._replace(edge_bias=False), {}),
        ("of returned weights", plain, {}),
        ("without dropout", plain._replace(dropout=0.0), {}),
        (
            "of given features",
            Settings(weights=True, theta="layer", **projected),
            {"learns_edges": False},
        ),
    ):
        yield f"{op} 1x7 float32 {name}"
        _attend(op, options, **more)


def _attend(
    kind: str,
    options: Settings,
    heads: int = 1,
    channels: int = 7,
    dtype: torch.dtype = SINGLE,
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


def _features() -> Iterator[str]:
    dropout, aggregate = gpu.kernels("dropout"), gpu.kernels("aggregate")
    gate, seeds = gpu.kernels("gate"), torch.arange(3)
    stored = SparseFeatures.from_torch(torch.eye(40).repeat(2, 1))
    for dtype in (SINGLE, HALF, FLOAT16, torch.float64):
        name, empty = str(dtype)[6:], partial(torch.empty, dtype=dtype)
        for columns in (64, 7) if dtype == SINGLE else (64,):
            x, values = empty(40, 3, columns), empty(80, 3)
            for known in ({"in_order": True}, {"skip_zeros": True}, {}):
                yield " ".join([f"aggregate of {columns} {name}", *known])
                aggregate.run(stored.by_node, values, x, **known)
            if dtype == torch.float64:
                continue
            yield f"gather of {columns} {name}"
            gpu.kernels("gather").run(empty(90, columns), plan(5))
            x = empty(90, 1, columns)
            for sets in (1, 3):
                yield f"dropout of {columns} {name} in {sets} sets"
                dropout.run(x.expand(90, sets, columns), seeds, 0.5)
            yield f"dropout of {columns} {name}"
            dropout.run(x, seeds[:1], 0.5)
        if dtype != torch.float64:
            x = empty(40, 64)
            yield f"gate of {name}"
            gate.forward(x, x)
            yield f"gate of {name} with bias"
            gate.forward(x, x, empty(64))
            yield f"gate of {name}, backward"
            gate.backward(x, None, x, x)
            yield f"gate of {name}, backward and its sums"
            gate.backward(x, torch.empty(5), x, x)
            yield f"padded gate of {name}"
            gate.close(x, plan(1))


def _products() -> Iterator[str]:
    for dtype in (SINGLE, HALF, FLOAT16):
        narrow = ((64, 7), (7, 64), (7, 7))[: 3 if dtype == SINGLE else 1]
        for outs, width in ((64, 64), *narrow):
            of = f"{outs}x{width} {str(dtype)[6:]}"
            dout = torch.empty(3000, 2, 3, outs, dtype=dtype)
            x, edge_map = torch.empty(3000, 3, width), torch.empty(3, outs, width)
            for side in (dout[:, 0], dout[:, 0].contiguous()):
                spaced = "" if side.is_contiguous() else " with space"
                yield f"outer product of {of}{spaced}"
                gpu.kernels("outer").run(side, x)
                yield f"edge map of {of}{spaced}"
                edge_maps.pull_back(side, edge_map)
            if dtype == SINGLE:
                yield f"added edge map of {of}"
                edge_maps.add_push(torch.empty(3000, 3, outs), x, edge_map)


def _graphs() -> Iterator[str]:
    for dtype in (torch.int64, torch.int32):
        ends = torch.zeros(2, 300, dtype=dtype)
        for loops in (0, 9):
            yield f"edges in {str(dtype)[6:]}{' with self-loops' * (loops > 0)}"
            edges.group_edges(ends, (9, 9), loops, loops > 0)
    sums = torch.zeros(2, dtype=torch.int64)
    yield "edges of long rows"
    edges._schedules(plan(18, 4), plan(32), sums, (9, 9), [(1, 5), (1, 5)], 8)


def _samples() -> Iterator[str]:
    ends = torch.zeros(2, 300, dtype=torch.int64)
    relation = Topology.of(ends, 300).relation(0, 0)
    seeds, key = torch.arange(9), torch.zeros(1, dtype=torch.int64)
    for fanout in ([15, 10], [5, -1], [70, 3]):
        for replace in (False, True):
            yield f"sample of {fanout}{' with repetition' * replace}"
            made = sampling.sample([relation], [300], 0, seeds, [fanout], key, replace)
            ends = (made.source[0], made.target[0])
            drawn = partial(
                sampling.Batch,
                made.pointer[0], *ends, made.nodes[0], made.edges[0], len(fanout),
            )  # fmt: skip
            for looped, loops in (
                (False, None), (True, None), (True, sampling.loops_of(*ends))
            ):  # fmt: skip
                for training in (False, True):
                    sampling.padded_graph(
                        drawn(loops), 0, sampling.Sizes(90, 40, 80),
                        self_loops=looped, training=training,
                    )  # fmt: skip
