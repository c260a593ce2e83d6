"""Speed and memory of the fused attention on one GPU, beside PyTorch Geometric.

    python -m benchmarks.attention_gpu measure --out DIR
    python -m benchmarks.attention_gpu kernels --out DIR
    python -m benchmarks.attention_gpu plot --out DIR

`measure` checks every kernel against the reference first, and gives no time for one
whose check failed. It writes DIR/attention_gpu.csv; `plot` draws that file.
Times are medians between CUDA events around single calls on an idle device: what the
host needs before and between the kernels is in them, about 1.1 ms for forward and
backward. `kernels` writes the kernels' own times, from torch's profiler, to
DIR/attention_gpu_kernels.csv. Memory is the peak beyond what was allocated before the
step (the inputs, the weights and the graph).
"""

import argparse
import csv
import functools
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.attention_checks import check, check_at_size, draw, load
from benchmarks.attention_figure import plot
from benchmarks.graphs import SIZES, Size
from tempergat import ops
from tempergat.ops import Graph

# Milliseconds for the op in float32, forward and forward+backward.
TARGETS = {"arxiv": (0.7, 3.2), "reddit": (11.0, 60.0), "products": (33.0, 145.0)}
SHAPES = {"arxiv": (4, 64), "reddit": (4, 32), "products": (4, 64)}
FOLDED = ((400, 8), (50, 7))
# Feature rows read per edge, forward and backward.
ROWS_READ = {"gat": (1, 1), "gatv2": (1, 3)}
DTYPES = (torch.float32, torch.bfloat16)
FIELDS = (
    "what", "graph", "edges", "heads", "channels", "dtype", "forward_ms", "step_ms",
    "peak_gib", "floor_ms", "target_ms", "note", "device", "torch", "triton",
)  # fmt: skip


class Report:
    """Rows of the table, printed and written as they come."""

    def __init__(self, path: Path) -> None:
        import triton

        self.path = path
        self.rows: list[dict[str, Any]] = []
        self.versions = {
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "triton": triton.__version__,
        }

    def add(self, what: str, **values: Any) -> None:
        row = {"what": what, **values, **self.versions}
        row = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}
        self.rows.append(row)
        shown = {k: v for k, v in row.items() if k not in self.versions}
        print(*(f"{k}={v}" for k, v in shown.items()), flush=True)
        with self.path.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(self.rows)


def median_ms(function: Callable[[], Any], budget_ms: float = 400.0) -> float:
    """The median time of a call, as often as fits the budget (3 to 50 times)."""
    function()
    times: list[float] = []
    while len(times) < 3 or (sum(times) < budget_ms and len(times) < 50):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def peak_gib(function: Callable[[], Any]) -> float:
    """Peak memory of a call beyond what is allocated already."""
    function()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**30


@functools.cache
def copy_rate() -> float:
    """Bytes per millisecond of a copy within the device's memory, read and written."""
    source = torch.randn(2**30, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / median_ms(lambda: target.copy_(source))


def floor_ms(kind: str, graph: Graph, width: int, itemsize: int) -> tuple[float, float]:
    """Forward, and forward+backward, if memory alone took time and cached nothing."""
    edges = graph.src.numel()
    forward, backward = (n * (width * itemsize + 4) for n in ROWS_READ[kind])
    nodes = graph.num_dst * width * itemsize * 2
    rate = copy_rate()
    step = edges * (forward + backward) + 3 * nodes
    return (edges * forward + nodes) / rate, step / rate


def measure_op(
    report: Report, name: str, graph: Graph, heads: int, channels: int, wrong: Any
) -> None:
    """Forward and forward+backward of both ops in both precisions."""
    for kind in ("gat", "gatv2"):
        for dtype in DTYPES:
            place = {
                "graph": name,
                "edges": graph.src.numel(),
                "heads": heads,
                "channels": channels,
                "dtype": str(dtype).removeprefix("torch."),
            }
            if wrong[kind, dtype]:
                report.add(f"op {kind}", **place, note=f"wrong: {wrong[kind, dtype]}")
                continue
            *leaves, dout = draw(kind, graph, heads, channels, dtype)
            op = getattr(ops, kind)

            def forward(op: Any = op, leaves: Any = leaves) -> None:
                with torch.no_grad():
                    op(graph, *leaves)

            def step(op: Any = op, leaves: Any = leaves, dout: Any = dout) -> None:
                torch.autograd.grad(op(graph, *leaves)[0], leaves, dout)

            floors = floor_ms(kind, graph, heads * channels, dtype.itemsize)
            target = TARGETS.get(name) if dtype == torch.float32 else None
            target = target if kind == "gatv2" else None
            report.add(
                f"op {kind}",
                **place,
                forward_ms=median_ms(forward),
                step_ms=median_ms(step),
                peak_gib=peak_gib(step),
                floor_ms=f"{floors[0]:.3g} / {floors[1]:.3g}",
                target_ms="" if target is None else f"{target[0]} / {target[1]}",
            )


def measure_folded(report: Report, wrong: Any) -> None:
    """Many models on a small graph as one call, replayed as a CUDA graph."""
    graph = load("cora")
    for kind in ("gat", "gatv2"):
        for heads, channels in FOLDED:
            place = {"graph": "cora", "edges": graph.src.numel(), "heads": heads}
            place |= {"channels": channels, "dtype": "float32"}
            if wrong[kind, torch.float32]:
                report.add(f"folded {kind}", **place, note="wrong")
                continue
            *leaves, dout = draw(kind, graph, heads, channels, torch.float32)
            op = getattr(ops, kind)
            torch.autograd.grad(op(graph, *leaves)[0], leaves, dout)
            torch.cuda.synchronize()
            recorded = torch.cuda.CUDAGraph()
            with torch.cuda.graph(recorded):
                inner = [x.detach().requires_grad_() for x in leaves]
                torch.autograd.grad(op(graph, *inner)[0], inner, dout)
            floors = floor_ms(kind, graph, heads * channels, 4)
            report.add(
                f"folded {kind}",
                **place,
                step_ms=median_ms(recorded.replay),
                floor_ms=floors[1],
                note="CUDA graph",
            )


def measure_scaling(report: Report, wrong: Any) -> None:
    """Time and memory against edges: 4 heads of 32 channels, 50 edges per node."""
    for exponent in (4, 5, 6, 7, 8, 9):
        edges = 10**exponent // 4
        name = f"1e{exponent} edge-heads"
        SIZES[name] = Size(max(edges // 50, 1), edges, 0)
        graph = load(name)
        measure_op(report, name, graph, 4, 32, wrong)
        del graph
        torch.cuda.empty_cache()


def layer_step(layer: torch.nn.Module, *inputs: Any) -> Callable[[], None]:
    parameters = tuple(layer.parameters())
    dout = torch.randn_like(layer(*inputs))

    def step() -> None:
        torch.autograd.grad(layer(*inputs), parameters, dout)

    return step


def measure_layers(report: Report, name: str, graph: Graph, wrong: Any) -> None:
    """A training step of whole layers, ours and PyTorch Geometric's, in float32."""
    heads, channels = SHAPES[name]
    width = SIZES[name].in_channels
    x = torch.randn(graph.num_src, width, device="cuda")
    place = {"graph": name, "edges": graph.src.numel(), "heads": heads}
    place |= {"channels": channels, "dtype": "float32"}
    times: dict[str, float] = {}
    for what, kind, make in our_layers(width, heads, channels):
        if wrong.get((kind, torch.float32)):
            report.add(what, **place, note="wrong")
            continue
        torch.manual_seed(0)
        step = layer_step(make().cuda(), x, *((graph,) if kind else ()))
        times[what] = median_ms(step)
        note = ""
        plain = times.get(f"layer {kind} plain")
        if what.endswith("gated") and plain is not None:
            beyond = (times[what] - times["gate's product"]) / plain - 1
            note = f"{beyond:+.1%} over plain beyond the gate's product"
        report.add(
            what, **place, step_ms=times[what], peak_gib=peak_gib(step), note=note
        )
    edge_index = graph.edge_index[:, : graph.num_edges]
    for what, make in peers(name, width, heads, channels):
        torch.manual_seed(0)
        report.add(what, **place, **try_peer(make, x, edge_index))


def our_layers(
    width: int, heads: int, channels: int
) -> Iterator[tuple[str, str, Callable[[], torch.nn.Module]]]:
    """Name, op and maker of what is measured of ours; the gate's product has no op."""
    from tempergat.nn import TemperGATConv, TemperGATv2Conv
    from tempergat.nn.gate import GateLinear

    product = functools.partial(GateLinear, width, heads * channels, 0.0)
    yield "gate's product", "", product
    for kind, ours in (("gat", TemperGATConv), ("gatv2", TemperGATv2Conv)):
        make = functools.partial(ours, width, channels, heads)
        plain = functools.partial(make, temperature=None, gate=None)
        yield f"layer {kind} plain", kind, plain
        yield f"layer {kind} tempered", kind, functools.partial(make, gate=None)
        yield f"layer {kind} tempered, gated", kind, make


def peers(
    name: str, width: int, heads: int, channels: int
) -> Iterator[tuple[str, Callable[[], torch.nn.Module]]]:
    """Name and maker of PyTorch Geometric's layers."""
    from torch_geometric.nn import GATConv, GATv2Conv, GCNConv

    for theirs in (GATConv, GATv2Conv):
        make = functools.partial(theirs, width, channels, heads)
        yield f"PyG {theirs.__name__}", make
        if name == "arxiv":
            title = f"PyG {theirs.__name__} compiled"
            yield title, lambda make=make: torch.compile(make(), dynamic=False)
    if name == "reddit":
        yield "PyG GCNConv", functools.partial(GCNConv, width, heads * channels)


def try_peer(
    make: Callable[[], torch.nn.Module], x: Tensor, edge_index: Tensor
) -> dict[str, Any]:
    """Time and memory of a training step, or what it asked for when memory ran out."""
    try:
        step = layer_step(make().cuda(), x, edge_index)
        return {"step_ms": median_ms(step), "peak_gib": peak_gib(step)}
    except torch.OutOfMemoryError as error:
        # The traceback holds the step's tensors.
        asked = re.search(r"Tried to allocate ([\d.]+ \w+)", str(error))
        held = torch.cuda.max_memory_allocated() / 2**30
        words = asked.group(1) if asked else "memory"
    finally:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    total = torch.cuda.mem_get_info()[1] / 2**30
    note = f"out of memory: asked for {words} more with {held:.0f} of {total:.0f} GiB"
    return {"note": note}


def measure(out: Path, parts: list[str]) -> None:
    report = Report(out / "attention_gpu.csv")
    wrong = {(k, d): check(k, d, 4, 32) for k in ("gat", "gatv2") for d in DTYPES}
    arxiv = load("arxiv")
    for kind in ("gat", "gatv2"):
        wrong[kind, torch.float32] += check_at_size(kind, arxiv, *SHAPES["arxiv"])
    for (kind, dtype), problem in wrong.items():
        report.add(f"check {kind}", dtype=str(dtype)[6:], note=problem or "passed")
    del arxiv
    report.add("copy", note=f"{copy_rate() * 1e-9:.3g} TB/s read and written")
    torch.cuda.empty_cache()
    for part in ("op", "layer"):
        for name in TARGETS if part in parts else ():
            graph = load(name)
            if part == "op":
                measure_op(report, name, graph, *SHAPES[name], wrong)
            else:
                measure_layers(report, name, graph, wrong)
            del graph
            torch.cuda.empty_cache()
    if "folded" in parts:
        measure_folded(report, wrong)
    if "scaling" in parts:
        measure_scaling(report, wrong)
    if any(wrong.values()):
        sys.exit("a check failed")


def measure_kernels(out: Path) -> None:
    """The time of each kernel of a forward and backward pass, in milliseconds."""
    from torch.profiler import ProfilerActivity, profile

    repeats = 3
    with (out / "attention_gpu_kernels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("graph", "op", "dtype", "kernel", "ms"))
        for name in TARGETS:
            graph = load(name)
            for kind in ("gat", "gatv2"):
                for dtype in DTYPES:
                    if check(kind, dtype, 4, 32):
                        continue
                    *leaves, dout = draw(kind, graph, *SHAPES[name], dtype)
                    op = getattr(ops, kind)
                    torch.autograd.grad(op(graph, *leaves)[0], leaves, dout)
                    torch.cuda.synchronize()
                    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
                        for _ in range(repeats):
                            torch.autograd.grad(op(graph, *leaves)[0], leaves, dout)
                        torch.cuda.synchronize()
                    times: dict[str, float] = {}
                    for event in profiled.key_averages():
                        ours = event.key.startswith("_")
                        kernel = event.key.strip("_") if ours else "rest"
                        ms = event.device_time_total / repeats / 1000
                        times[kernel] = times.get(kernel, 0.0) + ms
                    times["total"] = sum(times.values())
                    for kernel, ms in times.items():
                        row = (name, kind, str(dtype)[6:], kernel, f"{ms:.4g}")
                        writer.writerow(row)
            del graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["measure", "kernels", "plot"])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    every = ["op", "layer", "folded", "scaling"]
    parser.add_argument("--parts", nargs="+", choices=every, default=every)
    arguments = parser.parse_args()
    if arguments.command == "plot":
        plot(arguments.out)
    elif arguments.command == "kernels":
        measure_kernels(arguments.out)
    else:
        measure(arguments.out, arguments.parts)


if __name__ == "__main__":
    main()
