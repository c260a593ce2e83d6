"""Sets of graphs that no batches can be made of: one error each, by name."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import Subset
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, HeteroData

from tempergat import GraphLoader, UserError
from tests.sampling.small_graphs.drawn import InMemory, edges, small_graphs


def with_more(**more: Any) -> list[Data]:
    graphs = small_graphs(3)
    for graph in graphs:
        graph.update(more)
    return graphs


def nested() -> Tensor:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


def with_edge(*ends: int) -> list[Data]:
    graphs = small_graphs(3)
    graphs[1].edge_index = torch.tensor(ends).view(2, 1)
    graphs[1].edge_attr = torch.zeros(1, 2, dtype=torch.float64)
    return graphs


class Increments(Data):
    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        return torch.ones(3, 1, dtype=torch.int64) if key == "edge_index" else 0


OTHER_WIDTH = Data(x=torch.ones(2, 4))
OTHER_TYPE = Data(x=torch.ones(2, 3, dtype=torch.int64))
TYPED = HeteroData(paper={"x": torch.ones(2, 3)})
ONE = Data(x=torch.ones(2, 3))
OWN_NUMBERS = Increments(x=ONE.x, edge_index=edges(2, 1))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (lambda: [], "the dataset has no graphs"),
        (lambda: Subset(small_graphs(3), []), "the dataset has no graphs"),
        (lambda: 5, "dataset must be a list of Data or a Dataset, got int"),
        (lambda: small_graphs(1)[0], "must be a list of Data or a Dataset, got Data"),
        (lambda: iter(small_graphs(2)), "a list of Data or a Dataset, got list_iter"),
        (lambda: [TYPED], "the dataset holds HeteroData"),
        (lambda: InMemory([TYPED, TYPED]), "the dataset holds Hetero"),
        (lambda: [ONE, Batch.from_data_list([ONE])], "the dataset holds DataBatch"),
        (lambda: [(ONE, ONE)], "the dataset holds tuple"),
        (lambda: [ONE, *small_graphs(1)], "graph 1 has the attributes edge_attr, "),
        (lambda: [ONE, OTHER_WIDTH], "'x' of graph 1 is a torch.float32 tensor of "),
        (lambda: [ONE, OTHER_TYPE], "'x' of graph 1 is a torch.int64 tensor of "),
        (lambda: [Data(a="b")] * 2, "the graphs have no tensors"),
        (lambda: with_more(adj=torch.eye(2).to_sparse()), "'adj' (a list of Tensor)"),
        (lambda: with_more(edge_index=EdgeIndex([[0], [0]])), "give value.as_tensor()"),
        (lambda: with_more(z={"a": torch.ones(2)}), "'z' (dict) cannot be stacked"),
        (lambda: with_more(z=[torch.ones(2)]), "'z' (list) cannot be stacked"),
        (lambda: with_more(z=nested()), "'z' (Tensor) cannot be stacked"),
        (lambda: with_more(z=torch.ones(2).requires_grad_()), "no gradient to it"),
        (lambda: with_more(z=torch.ones(2, device="meta")), "on cpu, meta; move all"),
        (lambda: with_more(z_index=torch.ones(2)), "'z_index' holds torch.float32"),
        (lambda: [Data(z_index=torch.ones(2))] * 2, "to 'z_index', but the graphs do"),
        (lambda: [OWN_NUMBERS] * 2, "__inc__ gives numbers of shape [3, 1]"),
        (lambda: with_edge(0, 99), "an edge of graph 1 joins a node that it does not"),
        (lambda: with_edge(-1, 0), "an edge of graph 1 joins a node that it does not"),
    ],
)
def test_what_cannot_be_batched_is_named(
    graphs: Callable[[], Any], message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as error:
        GraphLoader(graphs(), 2)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be 1 or more, got 0"),
        ({"batch_size": True}, "batch_size must be 1 or more, got True"),
        ({"batch_size": 9, "drop_last": True}, "batch_size is 9, but the dataset has "),
        ({"seed": 0.5}, "seed must be a whole number of 64 bits, got 0.5"),
        ({"device": "cuda"}, "device is 'cuda', but torch sees no GPU; use 'cpu'"),
        ({"device": "nowhere"}, "device is 'nowhere'; use 'cpu' or 'cuda'"),
    ],
)
def test_options_that_no_loader_can_have_are_named(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match=re.escape(message)):
        GraphLoader(small_graphs(3), **options)


def test_a_set_too_large_for_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempergat.base.errors.available_bytes", lambda: 2000)
    # One large graph says nothing of the others' size.
    few = [Data(x=torch.ones(n, 1)) for n in (100, 1, 1, 1, 1, 1)]
    assert next(iter(GraphLoader(few, 6))).num_nodes == 105
    with pytest.raises(UserError, match="a concatenated set of 6 graphs needs"):
        GraphLoader([Data(x=torch.ones(n, 1)) for n in (1, 1, 1, 1, 1, 500)])


def test_a_device_without_room_for_the_graphs_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def move(*arguments: Any) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    graphs = small_graphs(3)
    monkeypatch.setattr(Tensor, "to", move)
    with pytest.raises(UserError, match=r"the graphs need .* GiB, which cpu does not"):
        GraphLoader(graphs, device="cpu")


def test_a_transform_is_refused_and_not_left_out() -> None:
    graphs = InMemory(small_graphs(3))
    graphs.transform = lambda graph: graph
    for dataset in (graphs, graphs[:2], Subset(graphs, [0])):
        with pytest.raises(UserError, match="the dataset has a transform"):
            GraphLoader(dataset)


def test_graphs_may_differ_in_what_is_left_out() -> None:
    graphs = small_graphs(3)
    graphs[1].extra = torch.ones(2)
    graphs[2].y = None
    with pytest.raises(UserError, match="leave the others out with exclude_keys"):
        GraphLoader(graphs)
    (batch,) = GraphLoader(graphs, 3, exclude_keys=["extra", "y"])
    assert "extra" not in batch
    assert "y" not in batch
    assert batch.number.tolist() == [0, 1, 2]


def test_an_attribute_taken_out_of_a_dataset_is_in_no_batch() -> None:
    dataset = InMemory(small_graphs(3))
    dataset._data.edge_attr = None
    (batch,) = GraphLoader(dataset, 3)
    assert "edge_attr" not in batch
    assert batch.number.tolist() == [0, 1, 2]


def test_a_subset_that_changes_its_graphs_is_asked_for_them() -> None:
    class Numbered(Subset):  # type: ignore[type-arg]
        def __getitem__(self, place: int) -> Data:
            graph = super().__getitem__(place).clone()
            return graph.update({"number": 10 + place})

        def __getitems__(self, places: list[int]) -> list[Data]:
            return [self[place] for place in places]

    (batch,) = GraphLoader(Numbered(InMemory(small_graphs(5)), [3, 1]), 2)
    assert batch.number.tolist() == [10, 11]


def test_graphs_of_a_mapped_file_stay_mapped(tmp_path: Path) -> None:
    graphs = small_graphs(30)
    InMemory.save(graphs, str(tmp_path / "graphs.pt"))
    values, slices, _ = torch.load(tmp_path / "graphs.pt", mmap=True)
    mapped = InMemory(graphs)
    mapped.data, mapped.slices = Data.from_dict(values), slices
    loader, expected = GraphLoader(mapped[3:9], 6), GraphLoader(graphs[3:9], 6)
    (batch,), (wanted,) = loader, expected
    for name in wanted.keys():  # noqa: SIM118
        torch.testing.assert_close(batch[name], wanted[name], rtol=0, atol=0)
    # Batches follow the mapped values, of which there is no copy.
    mapped._data.x += 1
    (changed,) = loader
    torch.testing.assert_close(changed.x, wanted.x + 1)
