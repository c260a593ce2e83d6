"""Small graphs for the tests of sampling."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tempergat.sampling import Topology
from tempergat.sampling.reference import SampledHops


def random_edges(
    num_src: int, num_dst: int, count: int, seed: int = 0, loops: bool = True
) -> Tensor:
    """Directed edges with self-loops, repeated edges and nodes without any."""
    generator = torch.Generator().manual_seed(seed)
    # Squared, so that degrees differ; the last tenth of the nodes has no edges.
    weights = torch.rand(2, count, generator=generator) ** 2
    limits = torch.tensor([[num_src * 0.9], [num_dst * 0.9]])
    edges = (weights * limits).long()
    if loops and num_src == num_dst:
        edges[0, : count // 20] = edges[1, : count // 20]
    return edges


def random_data(num_nodes: int = 200, count: int = 1500, seed: int = 0) -> Data:
    """A graph without types with features, labels and edge attributes."""
    edges = random_edges(num_nodes, num_nodes, count, seed)
    return Data(
        x=torch.randn(num_nodes, 5, generator=torch.Generator().manual_seed(seed)),
        y=torch.arange(num_nodes),
        edge_index=edges,
        edge_attr=torch.arange(count)[:, None].float(),
    )


SIZES = {"paper": 120, "author": 80, "venue": 7}
EDGE_TYPES = [
    ("paper", "cites", "paper"),
    ("author", "writes", "paper"),
    ("paper", "written_by", "author"),
    ("venue", "holds", "paper"),
]


def random_typed_data() -> HeteroData:
    """A typed graph; authors have no features, and no edge leads to a venue."""
    data = HeteroData()
    for kind, count in SIZES.items():
        if kind == "author":
            data[kind].num_nodes = count
        else:
            data[kind].x = torch.randn(count, 4)
    data["paper"].y = torch.arange(SIZES["paper"])
    for number, kind in enumerate(EDGE_TYPES):
        sizes = SIZES[kind[0]], SIZES[kind[2]]
        data[kind].edge_index = random_edges(*sizes, 600, number)
    return data


def of_one_type(topology: Topology, seeds: Tensor, fanout: list[int]) -> Any:
    """The first five arguments of `sample`, for a graph without types."""
    return [topology.relation()], [topology.num_src], 0, seeds, [fanout]


def assert_same_hops(ours: SampledHops, theirs: SampledHops) -> None:
    """Asserts that two batches are equal, bit for bit, on any device."""
    for name in ours._fields:
        one, other = getattr(ours, name), getattr(theirs, name)
        pairs = (
            zip(one, other, strict=True) if isinstance(one, list) else [(one, other)]
        )
        for x, y in pairs:
            if isinstance(x, Tensor):
                assert x.dtype == y.dtype, name
                assert torch.equal(x.cpu(), y.cpu()), name
            else:
                assert x == y, name


def write_sparse(path: Path, kind: str, shape: tuple[int, ...], last: int = 0) -> None:
    """Writes a ``.npy`` file of zeros, with one number at its end."""
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    with open(path, "wb") as stream:
        np.lib.format.write_array_header_2_0(stream, header)
        try:
            stream.seek((math.prod(shape) - 1) * np.dtype(kind).itemsize, 1)
            stream.write(np.array([last], kind).tobytes())
        except OSError:
            pytest.skip("the file system has no files of this size")
