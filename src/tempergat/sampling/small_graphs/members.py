"""The graphs of a data set as one object, with where each begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, Dataset, InMemoryDataset
from torch_geometric.data.collate import collate
from torch_geometric.data.data import BaseData
from torch_geometric.utils import is_sparse

from tempergat.base import UserError, listed, require_memory

# What gives the number of nodes, in PyG's order of preference.
NODE_KEYS = {"x", "feat", "pos", "batch", "node_type", "n_id", "tf"}
# From what else it is inferred, beside names with "node".
_INFERRED_FROM = {*NODE_KEYS, "adj", "adj_t", "edge_index", "face"}


class Members(NamedTuple):
    """The graphs of a data set: one object that holds all, and where each begins.

    Attributes:
        data: The concatenated graphs, in the form of PyG's ``InMemoryDataset``.
        slices: Where each graph begins in each attribute, by name.
        chosen: The numbers of the graphs that the data set consists of.
        total: How many graphs there are in all.
        numbers: Attributes that were Python's numbers in each graph.
    """

    data: Data
    slices: dict[str, Tensor]
    chosen: np.ndarray
    total: int
    numbers: frozenset[str] = frozenset()


def members_of(dataset: Any, exclude_keys: Iterable[str] = ()) -> Members:
    """The graphs of a list, of a ``Dataset``, or of a ``Subset`` of one.

    An ``InMemoryDataset`` is used as it is, without a copy.

    Args:
        dataset: The graphs.
        exclude_keys: Attributes that graphs need not have in common.

    Raises:
        UserError: It is something else, it is empty, or the graphs do not fit together.
    """
    is_one = isinstance(dataset, (BaseData, Mapping)) and not isinstance(dataset, Batch)
    if is_one or not all(hasattr(dataset, x) for x in ("__len__", "__getitem__")):
        raise UserError(
            f"dataset must be a list of Data or a Dataset, got {type(dataset).__name__}"
        )
    if len(dataset) == 0:
        raise UserError("the dataset has no graphs; give at least one")
    # A class that makes its graphs otherwise is read graph by graph.
    subset = torch.utils.data.Subset
    if isinstance(dataset, subset) and type(dataset).__getitem__ is subset.__getitem__:
        members = members_of(dataset.dataset, exclude_keys)
        return members._replace(chosen=members.chosen[np.array(dataset.indices)])
    if isinstance(dataset, Dataset) and dataset.transform is not None:
        raise UserError(
            "the dataset has a transform, which batches of ready-made graphs would "
            "leave out; use pre_transform, or pass [data for data in dataset] if it "
            "makes the same graph every time"
        )
    is_ready = getattr(type(dataset), "get", None) is InMemoryDataset.get
    if is_ready and dataset.slices is not None:
        _check_class(dataset._data)
        chosen = np.array(list(dataset.indices()), np.int64)
        return Members(dataset._data, dict(dataset.slices), chosen, dataset.len())
    graphs = [dataset[k] for k in range(len(dataset))]
    # The number of nodes is inferred also from what batches leave out.
    free = {k for k in exclude_keys if k not in _INFERRED_FROM and "node" not in k}
    different = _check_alike(graphs, free)
    values = (x for graph in graphs for x in graph.to_dict().values())
    require_memory(
        sum(x.numel() * x.element_size() for x in values if isinstance(x, Tensor)),
        f"a concatenated set of {len(graphs)} graphs",
        "pass an InMemoryDataset, whose tensors are used as they are",
    )
    data, slices, _ = collate(
        type(graphs[0]),
        data_list=graphs,
        increment=False,
        add_batch=False,
        exclude_keys=different,
    )
    numbers = {k for k, x in graphs[0].to_dict().items() if isinstance(x, (int, float))}
    chosen = np.arange(len(graphs))
    return Members(data, slices, chosen, len(graphs), frozenset(numbers))


def _check_class(data: Any) -> None:
    if not isinstance(data, Data) or isinstance(data, Batch):
        raise UserError(
            f"the dataset holds {type(data).__name__}; batches are made of Data"
        )


def _check_alike(graphs: Sequence[Any], free: set[str]) -> set[str]:
    """Raises UserError, by the graph's number, unless all have the same attributes.

    Args:
        graphs: The graphs.
        free: Attributes that may differ.

    Returns:
        Those that do.
    """
    first, different = graphs[0], set[str]()
    _check_class(first)
    expected = set(first.keys())
    for k, graph in enumerate(graphs):
        _check_class(graph)
        names = set(graph.keys())
        if not names ^ expected <= free:
            raise UserError(
                f"graph {k} has the attributes {listed(sorted(names))}, but graph 0 "
                f"has {listed(sorted(expected))}; give all graphs the same ones, or "
                "leave the others out with exclude_keys"
            )
        different |= names ^ expected
        for name in names & expected:
            one, other = _form(first, name), _form(graph, name)
            if one != other and name in free:
                different.add(name)
            elif one != other:
                raise UserError(
                    f"'{name}' of graph {k} is {_text(other)}, but that of graph 0 is "
                    f"{_text(one)}; only the number of rows may differ"
                )
    return different


def _form(graph: Data, name: str) -> tuple[Any, ...]:
    """What must be the same for all graphs: a tensor's type, width and device."""
    value = graph[name]
    if not isinstance(value, Tensor) or is_sparse(value) or value.is_nested:
        # PyG makes one tensor of the numbers of all graphs.
        kind = type(value)
        return (float if kind in (bool, int) else kind,)
    dim, sizes = graph.__cat_dim__(name, value), [str(size) for size in value.shape]
    if isinstance(dim, int) and sizes:
        sizes[dim] = "*"
    return value.dtype, value.device, ", ".join(sizes)


def _text(form: tuple[Any, ...]) -> str:
    if len(form) == 1:
        return f"of type {form[0].__name__}"
    dtype, device, sizes = form
    return f"a {dtype} tensor of shape [{sizes}] on {device}"
