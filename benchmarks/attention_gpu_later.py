"""The six rows of large graphs in under a minute, and memory with edge features.

    python -m benchmarks.attention_gpu_later [--out FILE] [--graphs arxiv reddit]

Times are medians between CUDA events around single calls, as in `attention_gpu`, with
what the host does; `kernels_ms` is the time of the kernels of a forward and backward
pass alone, from torch's profiler. Every op is checked first. Rows are added to
benchmarks/results/attention_gpu_later.csv as they come.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.attention_checks import check, draw, load
from benchmarks.attention_gpu import DTYPES, SHAPES, layer_step, median_ms, peak_gib
from benchmarks.origin import add_row, origin
from tempergat import ops
from tempergat.nn import TemperGATConv, TemperGATv2Conv
from tempergat.ops import Graph

RESULTS = Path(__file__).parent / "results" / "attention_gpu_later.csv"
PROFILED_STEPS = 3
EDGE_FEATURES = 8
FIELDS = ("what", "graph", "dtype", "forward_ms", "step_ms", "kernels_ms", "peak_gib")


def kernels_ms(step: Callable[[], Any]) -> float:
    """The time of a call's kernels."""
    step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(PROFILED_STEPS):
            step()
        torch.cuda.synchronize()
    total = sum(event.device_time_total for event in profiled.key_averages())
    return total / PROFILED_STEPS / 1000


def op_rows(name: str, graph: Graph) -> Iterator[dict[str, Any]]:
    """Both ops in both precisions."""
    for kind in ("gat", "gatv2"):
        for dtype in DTYPES:
            wrong = check(kind, dtype, 4, 32)
            if wrong:
                raise SystemExit(f"{kind} {dtype} is wrong: {wrong}")
            *leaves, dout = draw(kind, graph, *SHAPES[name], dtype)
            op = getattr(ops, kind)

            def forward(op: Any = op, leaves: Any = leaves) -> None:
                with torch.no_grad():
                    op(graph, *leaves)

            def step(op: Any = op, leaves: Any = leaves, dout: Any = dout) -> None:
                torch.autograd.grad(op(graph, *leaves)[0], leaves, dout)

            yield {
                "what": f"op {kind}",
                "graph": name,
                "dtype": str(dtype).removeprefix("torch."),
                "forward_ms": f"{median_ms(forward):.3g}",
                "step_ms": f"{median_ms(step):.4g}",
                "kernels_ms": f"{kernels_ms(step):.4g}",
            }


def edge_feature_rows(name: str, graph: Graph) -> Iterator[dict[str, Any]]:
    """A step of whole layers, with and without features of the edges."""
    heads, channels = SHAPES[name]
    x = torch.randn(graph.num_src, heads * channels, device="cuda")
    edges = graph.edge_index[:, : graph.src.numel() - graph.num_dst]
    for kind in (TemperGATv2Conv, TemperGATConv):
        for width in (None, EDGE_FEATURES):
            layer = kind(heads * channels, channels, heads, edge_dim=width).cuda()
            given = [] if width is None else [torch.randn(edges.size(1), width).cuda()]
            step = layer_step(layer, x, edges, *given)
            what = "without edge features" if width is None else f"edge_dim {width}"
            yield {
                "what": f"layer {kind.__name__}, {what}",
                "graph": name,
                "dtype": "float32",
                "step_ms": f"{median_ms(step):.4g}",
                "peak_gib": f"{peak_gib(step):.3g}",
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", nargs="+", choices=[*SHAPES], default=[*SHAPES])
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    about = origin(torch.device("cuda"))
    for name in arguments.graphs:
        graph = load(name)
        rows = [op_rows(name, graph)]
        if name == "arxiv":
            rows.append(edge_feature_rows(name, graph))
        for row in itertools.chain.from_iterable(rows):
            print(row, flush=True)
            add_row(arguments.out, row | about, [*FIELDS, *about])
        del graph, rows


if __name__ == "__main__":
    main()
