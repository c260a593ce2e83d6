"""The attention kernels on graphs of low degree, beside the bytes they must move.

    python -m benchmarks.short_rows [--kernels] [--out DIR]

Every op is checked against the reference on each graph before it is timed. Times are
those of the kernels alone, forward and backward, from torch's profiler; float32, 4
heads of 64 channels. Compulsory is the time to read and write every row once per pass
at the rate of a copy: GAT reads z and writes out forward, and reads dout, out and z and
writes dz backward; GATv2 reads both sides' features and dout in two passes backward. A
random graph is compared with one gather per edge instead. The gradients of GAT's scores
of targets, a pass over z and its gradient, are in a column of their own. Writes
DIR/short_rows.csv; ``--kernels`` prints the time of each kernel.
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.attention_checks import check_at_size, draw
from benchmarks.attention_gpu import copy_rate
from tempergat import ops
from tempergat.ops import Graph

HEADS, CHANNELS = 4, 64
ROW_BYTES = 4 * HEADS * CHANNELS
EDGES = 4_000_000
REPEATS = 5
FIELDS = (
    "graph", "op", "rows_moved", "ms", "scores_ms", "compulsory_ms", "ratio", "target",
    "met", "device", "torch",
)  # fmt: skip


def sampled() -> Graph:
    """The first layer of a sampled batch; new sources are numbered as they appear."""
    targets, sources, edges = 150_000, 594_000, 660_000
    is_new = torch.zeros(edges, dtype=torch.bool, device="cuda")
    is_new[torch.randperm(edges, device="cuda")[: sources - targets]] = True
    source = torch.randint(sources, (edges,), device="cuda")
    source[is_new] = torch.arange(targets, sources, device="cuda")
    target = torch.randint(targets, (edges,), device="cuda").sort().values
    edge_index = torch.stack([source, target])
    return Graph(edge_index, (sources, targets), self_loops=True)


def near(degree: int) -> Graph:
    """Every node has the nodes next to it in number as neighbours."""
    nodes = EDGES // degree
    steps = torch.arange(1, degree // 2 + 1, device="cuda")
    steps = torch.cat([steps, -steps])
    target = torch.arange(nodes, device="cuda").repeat_interleave(degree)
    source = (target + steps.repeat(nodes)) % nodes
    return Graph(torch.stack([source, target]), nodes)


def random(degree: int) -> Graph:
    """Every node has neighbours drawn at random."""
    nodes = EDGES // degree
    target = torch.arange(nodes, device="cuda").repeat_interleave(degree)
    source = torch.randint(nodes, (len(target),), device="cuda")
    return Graph(torch.stack([source, target]), nodes)


# Name, graph, the most times the compulsory bytes that the kernels should take, and
# whether an edge counts as a read of its own.
GRAPHS: tuple[tuple[str, Callable[[], Graph], float, bool], ...] = (
    ("sampled first layer", sampled, 1.6, False),
    ("near neighbours, degree 2", lambda: near(2), 1.6, False),
    ("near neighbours, degree 4", lambda: near(4), 1.6, False),
    ("near neighbours, degree 8", lambda: near(8), 2.0, False),
    ("random neighbours, degree 4", lambda: random(4), 1.2, True),
)


def rows_moved(kind: str, graph: Graph, per_edge: bool) -> int:
    """Feature rows that must be read or written, forward and backward."""
    sources, targets = graph.num_src, graph.num_dst
    edges = graph.src.size(0)
    # What a pass reads at the other ends of its edges.
    far_src, far_dst = (edges, edges) if per_edge else (sources, targets)
    if kind == "gat":
        return far_src + targets + far_dst + targets + 2 * sources
    forward = far_src + 2 * targets
    return forward + (far_src + 3 * targets) + (2 * far_dst + 2 * sources)


def kernel_times(step: Callable[[], Any]) -> dict[str, float]:
    """Milliseconds of each kernel in one call."""
    step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(REPEATS):
            step()
        torch.cuda.synchronize()
    return {
        event.key: event.device_time_total / REPEATS / 1000
        for event in profiled.key_averages()
    }


def step_of(kind: str, graph: Graph) -> Callable[[], Any]:
    *leaves, dout = draw(kind, graph, HEADS, CHANNELS, torch.float32)
    op = getattr(ops, kind)
    return lambda: torch.autograd.grad(op(graph, *leaves)[0], leaves, dout)


def measure(show_kernels: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    device = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name, make, target, per_edge in GRAPHS:
        torch.manual_seed(0)
        graph = make()
        for kind in ("gat", "gatv2"):
            problem = check_at_size(kind, graph, HEADS, CHANNELS)
            if problem:
                raise SystemExit(f"{kind} on {name}: {problem}")
            times = kernel_times(step_of(kind, graph))
            moved = rows_moved(kind, graph, per_edge)
            compulsory = moved * ROW_BYTES / copy_rate()
            scores = sum(
                ms for key, ms in times.items() if "scores" in key or "finish" in key
            )
            total = sum(times.values()) - scores
            row = {
                "graph": name,
                "op": kind,
                "rows_moved": moved,
                "ms": f"{total:.3g}",
                "scores_ms": f"{scores:.3g}",
                "compulsory_ms": f"{compulsory:.3g}",
                "ratio": f"{total / compulsory:.2f}",
                "target": target,
                "met": "yes" if total <= target * compulsory else "no",
            }
            rows.append(row | device)
            print(*row.values(), sep="  ", flush=True)
            if show_kernels:
                for key, ms in sorted(times.items(), key=lambda pair: -pair[1]):
                    print(f"    {ms:8.3f} ms  {key[:90]}")
        del graph
        torch.cuda.empty_cache()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    arguments = parser.parse_args()
    rows = measure(arguments.kernels)
    with (arguments.out / "short_rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
