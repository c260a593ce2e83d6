"""Dot-product attention on meshes of weather models, beside anemoi-models' kernel.

    pip download anemoi-models --no-deps && unzip anemoi_models-*.whl -d FOLDER
    python -m benchmarks.mesh [--anemoi FOLDER] [--out DIR]

The graphs: an icosahedral mesh of refinement 6 with the edges of all levels, the
encoder to it from a grid of one degree (each grid point has edges to the 3 nearest
nodes of the mesh), and a power-law graph of arxiv's size. Every edge has 8 features.
Our op takes them as they are; anemoi's kernel takes them projected, [E, H, C], and is
timed with that projection and without. Gradients are those of queries, keys, values and
the edges' linear map, or of the projected edges. Of layers, anemoi's kernel stands in
our layer in the place of our op; bfloat16 layers run under autocast.

Gradients of both are compared with the reference in float32 on each graph first. Op
times are those of the kernels, from torch's profiler; layer times are medians between
CUDA events. peak_gib is what a step needs beside its inputs, edges_gib what the edge
features take. Without ``--anemoi`` only ours is measured. Writes DIR/mesh.csv.
"""

import argparse
import csv
import functools
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, normalize

from benchmarks.attention_gpu import median_ms, peak_gib
from benchmarks.dot_product import WIDTH, check, draw_dot, op_step
from benchmarks.graphs import power_law_graph
from benchmarks.short_rows import kernel_times
from tempergat import ops
from tempergat.nn import TemperTransformerConv
from tempergat.ops import Graph

Op = Callable[..., Any]
LEVELS, GRID, NEAREST = 6, (181, 360), 3
FIELDS = (
    "graph", "edges", "dtype", "heads", "channels", "what", "forward_ms", "ms", "ratio",
    "peak_gib", "edges_gib", "note", "device", "torch",
)  # fmt: skip


def icosphere(levels: int) -> tuple[Tensor, Tensor]:
    """The nodes of a refined icosahedron on the unit sphere, and its edges.

    Every triangle is split into four, so often. The edges of all levels stand in one
    graph, in both directions.
    """
    golden = (1 + 5**0.5) / 2
    corners = [(0.0, a, b * golden) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    points = torch.tensor([p[i:] + p[:i] for i in range(3) for p in corners])
    nodes = normalize(points.double())
    near = torch.cdist(nodes, nodes) < 1.2
    triples = torch.combinations(torch.arange(12), 3)
    pairs = triples[:, [[0, 1], [1, 2], [2, 0]]]
    faces = triples[near[pairs[..., 0], pairs[..., 1]].all(dim=1)]
    edges = []
    for level in range(levels + 1):
        sides = faces[:, [[0, 1], [1, 2], [2, 0]]].sort(dim=-1).values
        ends, place = sides.flatten(0, 1).unique(dim=0, return_inverse=True)
        edges.append(ends)
        if level == levels:
            break
        middle = place.view(-1, 3) + len(nodes)
        nodes = torch.cat([nodes, normalize(nodes[ends].sum(dim=1))])
        (a, b, c), (ab, bc, ca) = faces.unbind(1), middle.unbind(1)
        smaller = ((a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca))
        faces = torch.cat([torch.stack(face, dim=1) for face in smaller])
    both = torch.cat(edges).T
    return nodes, torch.cat([both, both.flip(0)], dim=1)


def grid_to_mesh(
    grid: tuple[int, int], mesh: Tensor, nearest: int
) -> tuple[Tensor, int]:
    """Edges from the points of a latitude-longitude grid to nodes of the mesh."""
    north = torch.linspace(-90, 90, grid[0]).deg2rad()
    east = torch.arange(grid[1]).mul(360 / grid[1]).deg2rad()
    lat, lon = torch.cartesian_prod(north, east).double().to(mesh.device).unbind(1)
    points = [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
    parts = torch.stack(points, dim=1).split(1024)
    target = torch.cat([(x @ mesh.T).topk(nearest).indices for x in parts])
    source = torch.arange(len(target), device=mesh.device)
    return torch.stack([source.repeat_interleave(nearest), target.flatten()]), len(lat)


def grouped(edge_index: Tensor, num_src: int, num_dst: int) -> Graph:
    """A graph whose edges are in the order of their targets, as anemoi needs them."""
    source, target = edge_index[:, edge_index[1].argsort(stable=True)]
    pointer = target.bincount(minlength=num_dst).cumsum(0)
    return Graph.from_csr(torch.cat([pointer.new_zeros(1), pointer]), source, num_src)


def graphs(device: str) -> Iterator[tuple[str, Graph, torch.dtype, int, int]]:
    """Name, graph, precision, heads and channels; anemoi's models have 16 x 32."""
    nodes, edge_index = (x.to(device) for x in icosphere(LEVELS))
    mesh = grouped(edge_index, len(nodes), len(nodes))
    yield "mesh", mesh, torch.bfloat16, 16, 32
    edge_index, points = grid_to_mesh(GRID, nodes, NEAREST)
    encoder = grouped(edge_index, points, len(nodes))
    yield "grid to mesh", encoder, torch.bfloat16, 16, 32
    edge_index, num_nodes = power_law_graph("arxiv", device)
    yield "arxiv", grouped(edge_index, num_nodes, num_nodes), torch.float32, 4, 64


def load_anemoi(folder: Path) -> Any:
    """The module with anemoi's kernel, from a folder with the unpacked wheel."""
    path = folder / "anemoi" / "models" / "triton" / "gt.py"
    spec = importlib.util.spec_from_file_location("anemoi_gt", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def anemoi_op(module: Any, graph: Graph) -> Op:
    """anemoi's kernel with the arguments of `ops.dot_product`.

    Without ``edge_map`` the edges are projected already.
    """
    by_target, by_source = graph.by_target, graph.by_source
    # anemoi's layers have int64 indices.
    column = (by_target.other.long(), by_target.pointer.long())
    row = (by_source.pointer.long(), by_source.position.long(), graph.dst.long())

    def op(
        graph: Graph, q: Tensor, k: Tensor, v: Tensor, edge: Tensor, edge_map: Any
    ) -> tuple[Tensor]:
        if edge_map is not None:
            weight = edge_map.flatten(0, 1).to(q.dtype)
            edge = linear(edge.to(q.dtype), weight).view(-1, *q.shape[1:])
        call = module.graph_transformer_attention_conv
        return (call(q, k, v, edge, column, row),)

    return op


def measure_ops(
    graph: Graph, dtype: torch.dtype, heads: int, channels: int, theirs: Op | None
) -> Iterator[dict[str, Any]]:
    leaves, edges, dout = draw_dot(graph, heads, channels, dtype, WIDTH)
    ways = [("op", ops.dot_product, edges)]
    if theirs is not None:
        ways.append(("anemoi's kernel and projection", theirs, edges))
        projected = edges[0].new_empty(graph.num_all_edges, heads, channels)
        projected = projected.normal_().to(dtype).requires_grad_()
        ways.append(("anemoi's kernel", theirs, (projected, None)))
    for what, op, given in ways:
        step = op_step(op, graph, (leaves, given, dout))
        with torch.no_grad():
            forward = kernel_times(functools.partial(op, graph, *leaves, *given))
        yield {
            "what": what,
            "forward_ms": sum(forward.values()),
            "ms": sum(kernel_times(step).values()),
            "peak_gib": peak_gib(step),
            "edges_gib": given[0].nbytes / 2**30,
        }


def measure_layers(
    graph: Graph, dtype: torch.dtype, heads: int, channels: int, theirs: Op | None
) -> Iterator[dict[str, Any]]:
    width, device = heads * channels, graph.src.device
    layer = TemperTransformerConv(
        width, channels, heads, edge_dim=WIDTH, temperature=None, gate=None
    ).to(device)
    x_src, x_dst = (
        torch.randn(n, width, device=device) for n in (graph.num_src, graph.num_dst)
    )
    x: Any = (x_src, x_dst)
    if graph.num_src == graph.num_dst:
        x = x_dst = x_src
    edge_attr = torch.randn(graph.num_all_edges, WIDTH, device=device)

    def with_anemoi() -> Tensor:
        assert theirs is not None
        q, k, v = (
            lin(x).view(-1, heads, channels)
            for lin, x in (
                (layer.lin_query, x_dst),
                (layer.lin_key, x_src),
                (layer.lin_value, x_src),
            )
        )
        edge_map = layer.lin_edge.weight.view(heads, channels, WIDTH)
        (out,) = theirs(graph, q, k, v, edge_attr, edge_map)
        return out.flatten(1) + layer.lin_skip(x_dst)

    ways = {"layer": functools.partial(layer, x, graph, edge_attr)}
    if theirs is not None:
        torch.testing.assert_close(with_anemoi(), ways["layer"](), rtol=1e-4, atol=1e-4)
        ways["layer with anemoi's kernel"] = with_anemoi
    dout = torch.randn(graph.num_dst, width, device=device).to(dtype)
    parameters = tuple(layer.parameters())
    for what, call in ways.items():

        def forward(call: Callable[[], Tensor] = call) -> Tensor:
            with torch.autocast(device.type, dtype, dtype != torch.float32):
                return call().to(dtype)

        def step(forward: Callable[[], Tensor] = forward) -> Any:
            return torch.autograd.grad(forward(), parameters, dout)

        with torch.no_grad():
            forward_ms = median_ms(forward)
        row = {"what": what, "forward_ms": forward_ms, "ms": median_ms(step)}
        row |= {"peak_gib": peak_gib(step), "edges_gib": edge_attr.nbytes / 2**30}
        yield row


def measure(device: str, anemoi: Any) -> Iterator[dict[str, Any]]:
    for name, graph, dtype, heads, channels in graphs(device):
        theirs = None if anemoi is None else anemoi_op(anemoi, graph)
        place = {"graph": name, "edges": graph.num_all_edges, "dtype": str(dtype)[6:]}
        place |= {"heads": heads, "channels": channels}
        both = (("op", ops.dot_product, 1e-5), ("anemoi's kernel", theirs, 1e-4))
        for what, op, most in both if theirs is not None else both[:1]:
            off = check(graph, heads, channels, WIDTH, op)
            if not off < most:
                raise SystemExit(f"{what} on {name}: gradients are off by {off:.2g}")
            note = f"differs by {off:.1g} from the reference in float32"
            yield place | {"what": f"check of {what}", "note": note}
        for part in (measure_ops, measure_layers):
            ours = 0.0
            for row in part(graph, dtype, heads, channels, theirs):
                ours = ours or row["ms"]
                yield place | row | {"ratio": row["ms"] / ours}
            torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anemoi", type=Path, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    arguments = parser.parse_args()
    anemoi = None if arguments.anemoi is None else load_anemoi(arguments.anemoi)
    device = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    with (arguments.out / "mesh.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for row in measure("cuda", anemoi):
            row = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}
            print(*row.values(), sep="  ", flush=True)
            writer.writerow(row | device)
            file.flush()


if __name__ == "__main__":
    main()
