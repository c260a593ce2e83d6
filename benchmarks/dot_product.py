"""Dot-product attention on one GPU: the op beside GATv2's, the layer beside PyG's.

    python -m benchmarks.dot_product [--out DIR]

The op is checked against the reference on the arxiv-sized graph first, with and without
edge features. Op times are those of the kernels, forward and backward, from torch's
profiler; layer times are medians between CUDA events around a training step. GATv2's
layer is measured with and without edge features too. Writes DIR/dot_product.csv.
"""

import argparse
import csv
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.attention_checks import by_torch, draw, load
from benchmarks.attention_gpu import SHAPES, layer_step, median_ms, peak_gib
from benchmarks.short_rows import kernel_times
from tempergat import ops
from tempergat.ops import Graph

WIDTH = 8
# The most times the time of our GATv2 op, and of the op without edge features.
OP_TARGET, EDGE_TARGET = 1.6, 1.3
# Milliseconds and GiB of a step of a layer, arxiv size.
LAYER_TARGETS = {"plain": (9.6, 2.0), "T and gate": (11.2, 2.0), "edges": (11.0, 2.2)}
FIELDS = (
    "what", "graph", "dtype", "ms", "peak_gib", "ratio", "target", "met", "note",
    "device", "torch",
)  # fmt: skip


def draw_dot(graph: Graph, heads: int, channels: int, dtype: Any, width: int) -> Any:
    """Queries, keys and values; edge features and their map, or None twice."""
    make = functools.partial(torch.randn, device=graph.src.device)
    both = make(graph.num_src, 2 * heads * channels).to(dtype)
    key, value = (x.view(-1, heads, channels) for x in both.chunk(2, dim=1))
    query = make(graph.num_dst, heads, channels).to(dtype)
    edges = (None, None)
    if width:
        edge_map = make(heads, channels, width).mul_(0.3).requires_grad_()
        edges = (make(graph.num_all_edges, width), edge_map)
    leaves = [x.detach().requires_grad_() for x in (query, key, value)]
    return leaves, edges, make(graph.num_dst, heads, channels).to(dtype)


def op_step(op: Callable[..., Any], graph: Graph, drawn: Any) -> Callable[[], Any]:
    leaves, edges, dout = drawn
    wanted = [*leaves, *[x for x in edges if x is not None and x.requires_grad]]
    return lambda: torch.autograd.grad(op(graph, *leaves, *edges)[0], wanted, dout)


def check(
    graph: Graph, heads: int, channels: int, width: int, op: Any = ops.dot_product
) -> float:
    """The largest relative difference of a gradient from the reference's."""
    drawn = draw_dot(graph, heads, channels, torch.float32, width)
    fast = op_step(op, graph, drawn)()

    def slow(graph: Graph, q: Tensor, k: Tensor, v: Tensor, *edges: Any) -> Any:
        q = q * channels**-0.5
        return (by_torch("dot_product")(graph, v, k, q, *edges),)

    same = op_step(slow, graph, drawn)()
    differences = [(a - b).norm() / b.norm() for a, b in zip(fast, same, strict=True)]
    # Unlike Python's, torch's maximum of a NaN and a number is NaN.
    return float(torch.stack(differences).max())


def measure_ops(name: str) -> Iterator[dict[str, Any]]:
    graph, (heads, channels) = load(name), SHAPES[name]
    if name == "arxiv":
        worst = max(check(graph, heads, channels, width) for width in (0, WIDTH))
        if not worst < 1e-5:
            raise SystemExit(f"gradients differ from the reference by {worst:.2g}")
        yield {"what": "check", "graph": name, "note": f"differs by {worst:.1g}"}
    for dtype in (torch.float32, torch.bfloat16):
        place = {"graph": name, "dtype": str(dtype)[6:]}
        *leaves, dout = draw("gatv2", graph, heads, channels, dtype)
        base = sum(kernel_times(op_step(ops.gatv2, graph, (leaves, (), dout))).values())
        yield place | {"what": "gatv2", "ms": base}
        plain = 0.0
        for width in (0, WIDTH):
            drawn = draw_dot(graph, heads, channels, dtype, width)
            step = op_step(ops.dot_product, graph, drawn)
            ms, peak = sum(kernel_times(step).values()), peak_gib(step)
            beside, target = (plain, EDGE_TARGET) if width else (base, OP_TARGET)
            plain = plain or ms
            what = f"dot_product, {WIDTH} edge features" if width else "dot_product"
            row = {"what": what, "ms": ms, "peak_gib": peak, "ratio": ms / beside}
            yield place | row | {"target": target, "met": ms <= target * beside}
            del drawn, step
            torch.cuda.empty_cache()


def measure_layers() -> Iterator[dict[str, Any]]:
    from torch_geometric.nn import TransformerConv

    from tempergat.nn import TemperGATv2Conv, TemperTransformerConv

    graph, (heads, channels) = load("arxiv"), SHAPES["arxiv"]
    # As PyG's layer has it, without self-loops.
    edge_index = graph.edge_index[:, : graph.num_edges]
    graph = Graph(edge_index, graph.num_src)
    device = edge_index.device
    x = torch.randn(graph.num_src, 256, device=device)
    edge_attr = torch.randn(graph.num_edges, WIDTH, device=device)
    ours = functools.partial(TemperTransformerConv, 256, channels, heads)
    gatv2 = functools.partial(TemperGATv2Conv, 256, channels, heads)
    theirs = functools.partial(TransformerConv, 256, channels, heads)
    bare = {"temperature": None, "gate": None}
    for what, layer, edges, attr in (
        ("plain", ours(**bare), graph, None),
        ("T and gate", ours(), graph, None),
        ("edges", ours(**bare, edge_dim=WIDTH), graph, edge_attr),
        ("PyG", theirs(), edge_index, None),
        ("PyG compiled", torch.compile(theirs(), dynamic=False), edge_index, None),
        ("PyG, edges", theirs(edge_dim=WIDTH), edge_index, edge_attr),
        ("GATv2", gatv2(), edge_index, None),
        ("GATv2, edges", gatv2(edge_dim=WIDTH), edge_index, edge_attr),
    ):
        inputs = (x, edges) if attr is None else (x, edges, attr)
        step = layer_step(layer.to(device), *inputs)
        row = {"what": f"layer, {what}", "graph": "arxiv", "dtype": "float32"}
        row |= {"ms": median_ms(step), "peak_gib": peak_gib(step)}
        if what in LAYER_TARGETS:
            most_ms, most_gib = LAYER_TARGETS[what]
            met = row["ms"] <= most_ms and row["peak_gib"] <= most_gib
            row |= {"target": f"{most_ms} ms, {most_gib} GiB", "met": met}
        if what == "GATv2":
            without = row["ms"]
        if what == "GATv2, edges":
            row |= {"ratio": row["ms"] / without, "target": EDGE_TARGET}
            row["met"] = row["ratio"] <= EDGE_TARGET
        yield row
        torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    arguments = parser.parse_args()
    device = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    with (arguments.out / "dot_product.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        parts = (*map(measure_ops, SHAPES), measure_layers())
        for row in (row for part in parts for row in part):
            if "met" in row:
                row["met"] = "yes" if row["met"] else "no"
            row = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}
            print(*row.values(), sep="  ", flush=True)
            writer.writerow(row | device)
            file.flush()


if __name__ == "__main__":
    main()
