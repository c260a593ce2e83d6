"""Edges that change between two calls, also where torch does not see it."""

import ctypes
import subprocess
import sys
import timeit

import numpy as np
import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.nn import GATConv

from tempergat.nn import TemperGATConv, TemperGATv2Conv, forget_graphs
from tempergat.ops.cpu import edges as cpu_edges
from tempergat.ops.cpu.edges import checksum
from tempergat.ops.graphs.cache import tensor_cache

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(30, 4, generator=GENERATOR)
FIRST = torch.randint(0, 30, (2, 80), generator=GENERATOR)
SECOND = torch.randint(0, 30, (2, 80), generator=GENERATOR)
WRITE_FROM_ANOTHER_PROCESS = """
import sys
import numpy as np
shared = np.memmap(sys.argv[1], dtype=np.int64, mode="r+")
shared[:] = np.load(sys.argv[2]).ravel()
shared.flush()
"""


@pytest.fixture(name="layers")
def make_layers():
    """PyG's layer and ours with the same weights."""
    theirs = GATConv(4, 3, heads=2)
    ours = TemperGATConv(4, 3, heads=2, temperature=None, gate=None)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def edit_data(edges):
    edges.data[0, 5] = SECOND[0, 5]


def edit_numpy_view(edges):
    edges.numpy()[:] = SECOND.numpy()


def edit_by_dlpack(edges):
    torch.from_dlpack(edges).copy_(SECOND)


def edit_storage(edges):
    edges.untyped_storage().copy_(SECOND.untyped_storage())


def edit_raw_memory(edges):
    ctypes.memmove(edges.data_ptr(), SECOND.data_ptr(), SECOND.numel() * 8)


EDITS = [edit_data, edit_numpy_view, edit_by_dlpack, edit_storage, edit_raw_memory]


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_past_torch_s_counter_is_noticed(layers, edit):
    theirs, ours = layers
    edges = FIRST.clone()
    torch.testing.assert_close(ours(X, edges), theirs(X, edges))
    before = edges._version
    edit(edges)
    assert edges._version == before
    assert not torch.equal(edges, FIRST)
    torch.testing.assert_close(ours(X, edges), theirs(X, edges))


def test_an_edit_of_a_user_s_own_type_of_tensor_is_noticed(layers):
    class Own(torch.Tensor):
        pass

    theirs, ours = layers
    edges = FIRST.clone().as_subclass(Own)
    ours(X, edges)
    edges.as_subclass(torch.Tensor).numpy()[:] = SECOND.numpy()
    torch.testing.assert_close(ours(X, edges), theirs(X, SECOND))


def test_a_tensor_can_be_swapped_once_its_graph_is_forgotten(layers):
    theirs, ours = layers
    edges, other = FIRST.clone(), SECOND.clone()
    ours(X, edges)
    forget_graphs()
    torch.utils.swap_tensors(edges, other)
    torch.testing.assert_close(ours(X, edges), theirs(X, SECOND))


def test_another_process_that_writes_shared_memory_is_noticed(layers, tmp_path):
    theirs, ours = layers
    shared, new = tmp_path / "shared", tmp_path / "new.npy"
    mapped = np.memmap(shared, dtype=np.int64, mode="w+", shape=(2, 80))
    mapped[:] = FIRST.numpy()
    mapped.flush()
    np.save(new, SECOND.numpy())
    edges = torch.from_numpy(mapped)
    ours(X, edges)
    command = [sys.executable, "-c", WRITE_FROM_ANOTHER_PROCESS, shared, new]
    subprocess.run([str(part) for part in command], check=True)
    torch.testing.assert_close(edges, SECOND)
    torch.testing.assert_close(ours(X, edges), theirs(X, edges))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_an_unseen_edit_of_a_sparse_matrix_is_noticed(layers, layout):
    theirs, ours = layers
    dense = torch.zeros(30, 30)
    dense[FIRST[1], FIRST[0]] = 1.0
    adj_t = dense.to_sparse(layout=layout)
    ours(X, adj_t)
    indices = adj_t.indices()[1] if layout == torch.sparse_coo else adj_t.col_indices()
    indices.numpy()[:3] = [0, 1, 2]
    torch.testing.assert_close(ours(X, adj_t), theirs(X, adj_t))


def test_an_unseen_edit_of_an_edge_index_is_noticed(layers):
    theirs, ours = layers
    plain = FIRST.clone()
    edges = EdgeIndex(plain, sparse_size=(30, 30))
    ours(X, edges)
    plain.numpy()[0, 3] = (int(plain[0, 3]) + 1) % 30
    torch.testing.assert_close(ours(X, edges), theirs(X, plain))


@pytest.mark.parametrize(
    "view", [lambda e: e.t().contiguous().t(), lambda e: e[:, ::2]]
)
def test_an_unseen_edit_of_edges_with_gaps_is_noticed(layers, view):
    theirs, ours = layers
    whole = FIRST.clone()
    edges = view(whole)
    ours(X, edges)
    edges.numpy()[0, 7] = (int(edges[0, 7]) + 1) % 30
    torch.testing.assert_close(ours(X, edges), theirs(X, edges))


@pytest.mark.parametrize("with_library", [True, False])
def test_a_checksum_depends_on_every_element_of_a_small_tensor(
    with_library, monkeypatch
):
    if with_library and not cpu_edges._is_available:
        pytest.skip("the CPU kernels are not built")
    monkeypatch.setattr(cpu_edges, "_is_available", with_library)
    for dtype in (torch.int64, torch.int32):
        edges = torch.arange(2048, dtype=dtype).view(2, 1024)
        seen = {checksum(edges), checksum(edges.flip(0)), checksum(edges.flip(1))}
        for k in range(2048):
            edges.view(-1)[k] += 1
            seen.add(checksum(edges))
            edges.view(-1)[k] -= 1
        assert len(seen) == 2051


@pytest.mark.parametrize("with_library", [True, False])
def test_a_checksum_of_a_large_tensor_reads_samples_of_it(with_library, monkeypatch):
    if with_library and not cpu_edges._is_available:
        pytest.skip("the CPU kernels are not built")
    monkeypatch.setattr(cpu_edges, "_is_available", with_library)
    edges = torch.arange(200_000).view(2, -1)
    before = checksum(edges)
    edges[0, 0] += 1
    assert checksum(edges) != before
    edges[0, 0] -= 1
    assert checksum(edges) == before
    assert checksum(torch.arange(1, 200_001).view(2, -1)) != before


def test_a_checksum_takes_microseconds():
    if not cpu_edges._is_available:
        pytest.skip("the CPU kernels are not built")
    for count in (20, 1024, 1_000_000):
        edges = torch.randint(0, 30, (2, count))
        times = timeit.repeat(lambda e=edges: checksum(e), number=100, repeat=50)
        # 5 microseconds where nothing else runs.
        assert min(times) / 100 < 20e-6


@pytest.mark.parametrize("layer", [TemperGATConv, TemperGATv2Conv])
def test_a_layer_without_a_cache_keeps_no_graph(layer):
    forget_graphs()
    kept, fresh = layer(4, 3), layer(4, 3, cache=False)
    fresh.load_state_dict(kept.state_dict())
    edges = FIRST.clone()
    adj_t = torch.eye(30).to_sparse_csr()
    for given in (edges, adj_t):
        out = fresh(X, given)
        assert len(tensor_cache) == 0
        assert torch.equal(kept(X, given), out)
        assert len(tensor_cache) == 1
        forget_graphs()
        assert len(tensor_cache) == 0
