"""Layers on small graphs beside PyTorch Geometric: one forward and backward pass.

    python -m benchmarks.small_graphs [--device cpu] [--graphs molecule] [--compiled]

A graph is kept (the same `edge_index` in every step) or new (another one in every step,
as with batches of molecules or sampled neighbourhoods). All layers have 128 input
features and 8 heads of 16 channels; the input needs no gradient. Times are medians of
five rounds in which all layers take turns. Each layer is first checked: outputs and
gradients against PyG's, or with temperature and gate against the same layer that builds
its messages as PyG does. A layer whose check fails is written without a time. One row
per layer and graph goes to benchmarks/results/small_graphs_<device>.csv.
"""

import argparse
import copy
import csv
import os
import platform
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch_geometric
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, TransformerConv

from tempergat.nn import TemperGATConv, TemperGATv2Conv

RESULTS = Path(__file__).parent / "results"
IN_CHANNELS, HEADS, CHANNELS = 128, 8, 16
ATOMS = 20
ROUNDS = 5
TOLERANCE = 1e-4
PLAIN: dict[str, Any] = {"temperature": None, "gate": None}


class Size(NamedTuple):
    """A benchmark graph: its size, and how many steps are timed in a round."""

    num_nodes: int
    num_edges: int
    steps: int


SIZES = {
    "molecule": Size(20, 44, 100),
    "8 molecules": Size(160, 352, 60),
    "64 molecules": Size(1_280, 2_816, 20),
    "80 molecules": Size(1_600, 3_520, 20),
    "20k": Size(20_000, 100_000, 2),
    "100k": Size(100_000, 1_000_000, 1),
}


class Layer(NamedTuple):
    """A layer to time, and the one it must agree with."""

    name: str
    module: nn.Module
    baseline: str
    expected: nn.Module | None = None


def edges_of(name: str) -> Tensor:
    """The edges of a graph in both directions; molecules are chains with rings."""
    nodes, edges, _ = SIZES[name]
    generator = torch.Generator().manual_seed(0)
    if nodes % ATOMS or edges != nodes // ATOMS * 44:
        half = torch.randint(nodes, (2, edges // 2), generator=generator)
        return torch.cat([half, half.flip(0)], 1)
    first = torch.arange(nodes).view(-1, ATOMS)
    chain = torch.stack([first[:, :-1].flatten(), first[:, 1:].flatten()])
    bonds = torch.randint(ATOMS, (2, nodes // ATOMS, 3), generator=generator)
    rings = (bonds + first[:, :1]).flatten(1)
    half = torch.cat([chain, rings], 1)
    return torch.cat([half, half.flip(0)], 1)


def make_layers(device: torch.device, compiled: bool) -> list[Layer]:
    """PyG's layers and ours with the same weights."""
    torch.manual_seed(0)
    shape = (IN_CHANNELS, CHANNELS, HEADS)
    layers = [
        Layer("PyG GCNConv", GCNConv(IN_CHANNELS, HEADS * CHANNELS), "PyG GATConv"),
        Layer("PyG TransformerConv", TransformerConv(*shape), "PyG GATConv"),
    ]
    for theirs, ours in ((GATConv, TemperGATConv), (GATv2Conv, TemperGATv2Conv)):
        name = f"PyG {theirs.__name__}"
        eager = theirs(*shape)
        plain = ours(*shape, **PLAIN)
        plain.load_state_dict(eager.state_dict())
        both = ours(*shape)
        by_messages = copy.deepcopy(both)
        by_messages.register_message_forward_hook(_do_nothing)
        layers += [
            Layer(name, eager, name),
            Layer(f"{ours.__name__}, plain", plain, name, eager),
            Layer(f"{ours.__name__}, T and gate", both, name, by_messages),
        ]
        if compiled:
            again = torch.compile(copy.deepcopy(eager), dynamic=True)
            layers.append(Layer(f"{name}, compiled", again, name, eager))
    for layer in layers:
        layer.module.to(device)
        if layer.expected is not None:
            layer.expected.to(device)
    return layers


def _do_nothing(*_: Any) -> None: ...


def worst_difference(layer: Layer, x: Tensor, edges: Tensor) -> float:
    """Largest difference of output and gradients, over each one's largest value."""
    if layer.expected is None:
        return 0.0
    found = []
    for module in (layer.module, layer.expected):
        out = module(x, edges)
        incoming = torch.linspace(-1.0, 1.0, out.numel(), device=x.device)
        leaves = list(module.parameters())
        gradients = torch.autograd.grad(out, leaves, incoming.view(out.shape))
        found.append([out.detach(), *gradients])
    differences = [
        (a - b).abs().max() / b.abs().max().clamp(min=1e-6)
        for a, b in zip(*found, strict=True)
    ]
    return float(torch.stack(differences).max())


def step_ms(module: nn.Module, x: Tensor, graphs: list[Tensor]) -> float:
    """The time of one step, over as many steps as there are graphs."""
    _wait(x.device)
    start = time.perf_counter()
    for edges in graphs:
        out = module(x, edges)
        out.backward(torch.ones_like(out))
    _wait(x.device)
    return (time.perf_counter() - start) / len(graphs) * 1e3


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure(
    name: str, layers: list[Layer], device: torch.device, rounds: int = ROUNDS
) -> list[dict[str, Any]]:
    """The rows of one graph, kept and new."""
    nodes, _, steps = SIZES[name]
    torch.manual_seed(0)
    x = torch.randn(nodes, IN_CHANNELS, device=device)
    edges = edges_of(name).to(device)
    differences = {layer.name: worst_difference(layer, x, edges) for layer in layers}
    rows = []
    for graph in ("kept", "new"):
        times: dict[str, list[float]] = {layer.name: [] for layer in layers}
        # The first round warms up.
        for _ in range(1 + rounds):
            for layer in layers:
                graphs = [edges] * steps
                if graph == "new":
                    graphs = [edges.clone() for _ in graphs]
                times[layer.name].append(step_ms(layer.module, x, graphs))
        medians = {key: statistics.median(found[1:]) for key, found in times.items()}
        for layer in layers:
            row: dict[str, Any] = {
                "device": _device_name(device),
                "torch": torch.__version__,
                "torch_geometric": torch_geometric.__version__,
                "threads": torch.get_num_threads(),
                "nodes": nodes,
                "edges": edges.size(1),
                "graph": graph,
                "layer": layer.name,
                "difference": f"{differences[layer.name]:.1e}",
                "check": "FAILED",
            }
            if differences[layer.name] < TOLERANCE:
                ratio = medians[layer.name] / medians[layer.baseline]
                row |= {
                    "check": "passed" if layer.expected is not None else "baseline",
                    "ms": f"{medians[layer.name]:.3f}",
                    "times_pyg": f"{ratio:.2f}",
                }
            rows.append(row)
    return rows


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU, {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--graphs", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--compiled", action="store_true", help="PyG's layers compiled")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    layers = make_layers(device, arguments.compiled)
    rows = []
    for name in arguments.graphs:
        for row in measure(name, layers, device):
            rows.append(row)
            print(
                f"{row['nodes']:>7,} nodes {row['edges']:>9,} edges  {row['graph']:<4} "
                f"{row['layer']:<30} {row.get('ms', '-'):>9} ms  "
                f"{row.get('times_pyg', row['check']):>6}",
                flush=True,
            )
    out = arguments.out or RESULTS / f"small_graphs_{device.type}.csv"
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
