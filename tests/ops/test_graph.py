"""The graph object, and the cache that builds it once per training loop."""

import gc
import weakref

import pytest
import torch

from tempergat import Graph
from tempergat.nn import TemperGATConv
from tempergat.ops.graphs.cache import TensorCache, tensor_cache

EDGES = torch.tensor([[0, 1, 2, 2, 0, 3], [1, 2, 0, 2, 1, 0]])


@pytest.fixture(autouse=True)
def empty_cache():
    tensor_cache.clear()
    yield
    tensor_cache.clear()


def edges_of(rows, num_rows):
    pairs = []
    for i in range(num_rows):
        for slot in range(int(rows.pointer[i]), int(rows.pointer[i + 1])):
            pairs.append((i, int(rows.other[slot]), int(rows.position[slot])))
    return sorted(pairs)


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_both_groupings_hold_every_edge_once(self_loops, padded):
    graph = Graph(EDGES, 4, self_loops=self_loops, padded=padded)
    live = [
        (int(s), int(d), p)
        for p, (s, d) in enumerate(zip(graph.src, graph.dst, strict=True))
        if int(d) < 4
    ]
    assert edges_of(graph.by_target, 4) == sorted((d, s, p) for s, d, p in live)
    assert edges_of(graph.by_source, 4) == sorted((s, d, p) for s, d, p in live)


def test_self_loops_come_last_and_replace_existing_ones():
    graph = Graph(EDGES, 4, self_loops=True)
    assert graph.edge_index.tolist() == [
        [0, 1, 2, 0, 3, 0, 1, 2, 3],
        [1, 2, 0, 1, 0, 0, 1, 2, 3],
    ]
    # Identities skip the replaced edge (3); loop i has number_of_edges + i.
    assert graph.edge_id.tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_a_bipartite_graph_has_loops_only_where_both_sides_have_the_node():
    graph = Graph(torch.tensor([[4], [1]]), (5, 2), self_loops=True)
    assert graph.edge_index.tolist() == [[4, 0, 1], [1, 0, 1]]


def test_graph_is_independent_of_later_edits():
    edges = EDGES.clone()
    graph = Graph(edges, 4)
    edges.fill_(3)
    assert torch.equal(graph.edge_index, EDGES)


def test_check_can_be_left_out():
    bad = torch.tensor([[0], [9]])
    with pytest.raises(ValueError, match="target node 9"):
        Graph(bad, 4)
    assert Graph(bad, 4, check=False).num_edges == 1


def test_index_type_is_kept():
    assert Graph(EDGES.int(), 4, self_loops=True).edge_index.dtype == torch.int32
    assert Graph(EDGES, 4, self_loops=True).edge_index.dtype == torch.int64


def builds(monkeypatch):
    made = []
    original = Graph.__init__

    def counting(self, *args, **kwargs):
        made.append(self)
        original(self, *args, **kwargs)

    monkeypatch.setattr(Graph, "__init__", counting)
    return made


def test_a_training_loop_builds_its_graph_once(monkeypatch):
    made = builds(monkeypatch)
    conv, x = TemperGATConv(3, 2), torch.randn(4, 3)
    for _ in range(5):
        conv(x, EDGES).sum().backward()
    assert len(made) == 1


def test_an_edit_in_place_is_noticed():
    conv, x = TemperGATConv(3, 2), torch.randn(4, 3)
    edges = EDGES.clone()
    conv(x, edges)
    edges[0, 0] = 3
    assert torch.equal(conv(x, edges), conv(x, edges.clone()))
    edges[0, 0] = 7
    with pytest.raises(ValueError, match="source node 7"):
        conv(x, edges)


def test_replaced_data_is_noticed():
    conv, x = TemperGATConv(3, 2), torch.randn(4, 3)
    edges = EDGES.clone()
    conv(x, edges)
    edges.data = torch.tensor([[3], [1]])
    assert torch.equal(conv(x, edges), conv(x, torch.tensor([[3], [1]])))


def test_two_sizes_and_both_self_loop_settings_do_not_mix(monkeypatch):
    made = builds(monkeypatch)
    with_loops, without = TemperGATConv(3, 2), TemperGATConv(3, 2, add_self_loops=False)
    without.load_state_dict(with_loops.state_dict())
    small, large = torch.randn(4, 3), torch.randn(6, 3)
    results = {}
    for _ in range(2):
        for name, conv, x in (
            ("a", with_loops, small),
            ("b", without, small),
            ("c", with_loops, large),
        ):
            out = conv(x, EDGES)
            assert torch.equal(results.setdefault(name, out), out)
    assert len(made) == 3
    assert results["c"].shape == (6, 2)
    assert not torch.equal(results["a"], results["b"])


def test_a_freed_tensor_whose_address_is_reused_is_another_tensor():
    conv, x = TemperGATConv(3, 2), torch.randn(4, 3)
    for round_ in range(50):
        edges = torch.randint(
            0, 4, (2, 6), generator=torch.Generator().manual_seed(round_)
        )
        expected = conv(x, Graph(edges, 4))
        assert torch.equal(conv(x, edges), expected)
        del edges
    assert len(tensor_cache) == 0


def test_the_cache_keeps_no_tensor_alive():
    conv, x = TemperGATConv(3, 2), torch.randn(4, 3)
    edges = EDGES.clone()
    conv(x, edges).sum().backward()
    alive = weakref.ref(edges)
    del edges
    gc.collect()
    assert alive() is None
    assert len(tensor_cache) == 0


def test_the_cache_is_bounded():
    cache = TensorCache(limit=3)
    tensors = [EDGES.clone() for _ in range(10)]
    for tensor in tensors:
        cache.get(tensor, "key", lambda: 1)
    assert len(cache) == 3
    for key in range(10):
        cache.get(tensors[-1], key, lambda: 1)
    assert len(cache) == 3


def test_the_cache_keeps_many_small_graphs_but_few_large_ones():
    small = [EDGES.clone() for _ in range(100)]
    for tensor in small:
        tensor_cache.get(tensor, "key", lambda: 1)
    assert len(tensor_cache) == 100
    cache = TensorCache(numbers=20 * EDGES.numel())
    for tensor in small:
        cache.get(tensor, "key", lambda: 1)
    assert len(cache) == 20
    assert cache.get(small[-20], "key", lambda: 2) == 1
    assert cache.get(small[0], "key", lambda: 2) == 2
    large = torch.zeros(40 * EDGES.numel(), dtype=torch.long)
    cache.get(large, "key", lambda: 1)
    assert len(cache) == 16
    assert cache.get(large, "key", lambda: 2) == 1


def test_freed_tensors_take_no_room_in_the_cache():
    cache = TensorCache(numbers=20 * EDGES.numel())
    for _ in range(100):
        cache.get(EDGES.clone(), "key", lambda: 1)
    alive = [EDGES.clone() for _ in range(20)]
    for tensor in alive:
        cache.get(tensor, "key", lambda: 1)
    assert len(cache) == 20


def test_inference_tensors_work_without_a_version():
    conv, x = TemperGATConv(3, 2), torch.randn(4, 3)
    with torch.inference_mode():
        edges = EDGES.clone()
        first = conv(x, edges)
        assert torch.equal(conv(x, edges), first)
    assert torch.equal(conv(x, EDGES), first)


def test_graph_moves_between_devices_with_all_it_has():
    graph = Graph(EDGES, 4)
    graph.with_self_loops()
    moved = graph.to("meta")
    assert moved.by_target.pointer.device.type == "meta"
    assert moved.with_self_loops().src.device.type == "meta"
    assert graph.to("cpu") is graph


@pytest.mark.usefixtures("kernels")
def test_edges_of_no_row_are_grouped_last_as_torch_sorts_them() -> None:
    generator = torch.Generator().manual_seed(0)
    key = torch.randint(8, (40,), generator=generator, dtype=torch.int32)
    other = torch.arange(40, dtype=torch.int32)
    # Key 7 belongs to no row.
    arguments = (key, other.flip(0), other + 100, 7)
    found = torch.ops.tempergat.group_rows(*arguments)
    order = key.argsort(stable=True)
    pointer = torch.searchsorted(key.sort().values, torch.arange(8).int())
    expected = (pointer, other.flip(0)[order], order, other[order] + 100)
    for one, exact in zip(found, expected, strict=True):
        assert torch.equal(one, exact.int())
    torch.library.opcheck(torch.ops.tempergat.group_rows.default, arguments)
    with pytest.raises(ValueError, match="there are 6"):
        torch.ops.tempergat.group_rows(*arguments[:-1], 6)
