"""Checks the arrays of graphs: features, edges, and the number of nodes."""

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage

from tempergat.base import UserError, first_line
from tempergat.data.features import csr_tensor, is_lost_in_float32
from tempergat.data.formats.errors import GraphError

# For graphs of which each has one label.
OF_WHOLE_GRAPHS = (
    "where the label is that of a whole graph, as of a molecule, use the layers in a "
    "model of your own: here nodes are classified"
)
EdgeStore = tuple[tuple[str, str, str] | None, BaseStorage, tuple[int, int]]


def check_edges(
    source: str, data: Data | HeteroData, widen: bool = False
) -> list[EdgeStore]:
    """Checks the edges of a graph, which may be mapped into memory.

    The number of nodes is set on every node type. Otherwise PyG would guess it from the
    edges and miss isolated nodes.

    Args:
        source: Where the graph came from, for errors.
        data: The graph.
        widen: Whether edges become int64, in place.

    Returns:
        Every edge type with its storage and the number of nodes at either end.

    Raises:
        GraphError: Edges are missing, of a wrong shape or type, or lead to a node that
            does not exist.
    """
    stores: list[EdgeStore] = []
    if isinstance(data, HeteroData):
        ends = [end for kind in data.edge_types for end in (kind[0], kind[2])]
        for name in {*data.node_types, *ends}:
            data[name].num_nodes = count_nodes(source, data, name)
        for kind in data.edge_types:
            sizes = (data[kind[0]].num_nodes, data[kind[2]].num_nodes)
            stores.append((kind, data[kind], sizes))
        if not stores:
            raise UserError(f"{source} has no edge types; add an edge_index for one")
    else:
        count = data.num_nodes = count_nodes(source, data, None)
        stores.append((None, data, (count, count)))
    for kind, store, sizes in stores:
        _check_edges(source, "" if kind is None else f" of {kind}", store, sizes)
    for _, store, _ in stores if widen else ():
        store.edge_index = store.edge_index.long()
    return stores


def count_nodes(source: str, data: Data | HeteroData, kind: str | None) -> int:
    """The number of nodes of a type; `kind` is None in a homogeneous graph.

    Raises:
        GraphError: It is not known.
    """
    store = data if kind is None else data[kind]
    for name in ("x", "y"):
        value = store.get(name)
        if isinstance(value, Tensor) and value.dim() > 0:
            return int(value.shape[0])
    count = store.get("num_nodes")
    if not isinstance(count, int) or count < 0:
        of_kind = "" if kind is None else f" of {kind}"
        problem = f"the number of nodes{of_kind} is unknown"
        raise GraphError(f"{source}:", problem, "set x or num_nodes")
    return count


def _check_edges(
    source: str, where: str, store: BaseStorage, sizes: tuple[int, int]
) -> None:
    ends = store.get("edge_index")
    if ends is None:
        raise GraphError(
            source,
            f"has no edge_index{where}, only {', '.join(store.keys())}",
            "save the edges as an edge_index of shape (2, edges)",
        )
    name = f"edge_index{where}"
    if not isinstance(ends, Tensor) or ends.dim() != 2 or ends.shape[0] != 2:
        shape = tuple(ends.shape) if isinstance(ends, Tensor) else type(ends).__name__
        problem = f"{name} is {shape}"
        raise GraphError(f"{source}:", problem, "make its shape (2, edges)")
    if ends.is_floating_point() or ends.is_complex() or ends.dtype == torch.bool:
        problem = f"{name} has type {ends.dtype}"
        raise GraphError(f"{source}:", problem, "make it integers")
    for row, (values, size) in enumerate(zip(ends, sizes, strict=True)):
        # The extremes take no memory, which the edges of a mapped graph may exceed.
        if not len(values) or (int(values.min()) >= 0 and int(values.max()) < size):
            continue
        at = int(torch.nonzero((values < 0) | (values >= size))[0])
        remedy = "add the node or drop the edge"
        past = [int(end.max()) - most for end, most in zip(ends, sizes, strict=True)]
        if int(ends.min()) == 1 and max(past) == 0:
            remedy = "it seems to count nodes from 1: subtract 1 from edge_index"
        raise GraphError(
            f"{source}:",
            f"{name}[{row}, {at}] is {int(values[at])}, but there are {size} nodes "
            f"(0..{size - 1})",
            remedy,
        )


def check_features(source: str, data: Data | HeteroData) -> None:
    """Checks features and makes them float32, in place.

    Raises:
        GraphError: They are not matrices, or do not fit the labels.
    """
    for store in data.node_stores:
        x = store.get("x")
        if x is None:
            continue
        where = "x" if store._key is None else f"x of {store._key}"
        if not isinstance(x, Tensor) or x.dim() != 2:
            shape = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            problem = f"{where} is {shape}"
            raise GraphError(f"{source}:", problem, "make it nodes x features")
        if x.is_complex():
            problem = f"{where} has type {x.dtype}"
            raise GraphError(f"{source}:", problem, "make it real numbers")
        labels = store.get("y")
        if isinstance(labels, Tensor) and labels.shape[0] != x.shape[0]:
            remedy = "give both one row per node"
            if labels.shape[0] == 1:
                remedy += f"; {OF_WHOLE_GRAPHS}"
            problem = f"{where} has {x.shape[0]} rows, but y has {labels.shape[0]}"
            raise GraphError(f"{source}:", problem, remedy)
        narrow = x.float()
        if x.layout == torch.strided and x.dtype in (torch.float64, torch.int64):
            columns = zip(x.T.numpy(), narrow.T.numpy(), strict=True)
            lost = [at for at, pair in enumerate(columns) if is_lost_in_float32(*pair)]
            if lost:
                raise GraphError(
                    f"{source}:",
                    f"column {lost[0]} of {where} holds numbers like "
                    f"{x[0, lost[0]].item():g}, whose differences are lost in 32 bits",
                    "subtract the smallest of them from all",
                )
        store.x = narrow
        if narrow.layout != torch.sparse_csr:
            continue
        try:
            # Indices that lead outside the arrays are refused.
            store.x = csr_tensor(
                narrow.crow_indices().numpy(),
                narrow.col_indices().numpy(),
                narrow.values().numpy(),
                x.shape[1],
            )
        except RuntimeError as error:
            problem = f"{where} is a broken sparse matrix ({first_line(error)})"
            raise GraphError(f"{source}:", problem, "save it again") from error


def require_finite(source: str, data: Data | HeteroData) -> None:
    """Checks that features, which may be mapped into memory, are finite in float32.

    Raises:
        GraphError: One is not.
    """
    for store in data.node_stores:
        x = store.get("x")
        if x is None:
            continue
        where = "x" if store._key is None else f"x of {store._key}"
        values = x.values() if x.layout == torch.sparse_csr else x
        # NaN is both the least and the greatest of numbers with a NaN.
        extremes = values.aminmax() if values.numel() else ()
        if all(torch.isfinite(extreme.float()) for extreme in extremes):
            continue
        wrong = torch.nonzero(~torch.isfinite(values.float()))[0]
        place = ", ".join(str(int(index)) for index in wrong)
        raise GraphError(
            f"{source}:",
            f"{where} holds {float(values[tuple(wrong)])} at [{place}]",
            "fill or drop values that are not finite",
        )
