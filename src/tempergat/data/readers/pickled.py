"""Graphs in pickles, read without running code: Planetoid's, and the subsets of OAG.

H2GB publishes the subsets of the Open Academic Graph. Each file is a pickle in torch's
container: `node_forward` numbers the nodes of every type, `node_feature` is one pandas
table per type with the columns `id`, `emb` and, for papers, `time`, and
`edge_list[target][source][relation]` maps a target to its sources. Which versions wrote
it is not known, so both containers are read (a zip file since torch 1.6, pickles in a
row before), tables of pandas before and since 1.3, and what dill writes in place of
pickle. Nothing is run: the few classes that a table consists of, and the functions that
dill saves, are read as plain records, and any other name is an error.
"""

import pickle
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy.sparse
from torch_geometric.data import Data, HeteroData

from tempergat.base import first_line
from tempergat.data.dataset import UNLABELLED
from tempergat.data.features import as_tensor
from tempergat.data.formats.errors import DamagedFile
from tempergat.data.formats.graphs import add_relation, deduplicate, make_graph
from tempergat.data.formats.number_tables import read_numbers, require_once
from tempergat.data.formats.pickles import (
    PLAIN_DATA,
    TypeRecord,
    load_pickle,
    load_pickle_stream,
)

_VALIDATION_NODES = 500
_TARGET, _VENUE, _LABEL_RELATION = "paper", "venue", "PV_Journal"
_LAST_TRAINING_YEAR, _VALIDATION_YEAR = 2016, 2017


def read_planetoid(paths: dict[str, Path]) -> Data:
    """Reads a Planetoid graph from its eight files.

    `allx` holds the training and validation nodes and the rest of the graph, `tx` the
    test nodes in the shuffled order of `test.index`. Citeseer's index skips some
    nodes: those stay in the graph without features and without a label.
    """
    part = {name.split(".", 2)[2]: path for name, path in paths.items()}
    matrices = {name: _load_matrix(part[name]) for name in ("allx", "tx")}
    one_hot = {name: _one_hot_labels(part[name]) for name in ("y", "ally", "ty")}
    test_index = read_numbers(part["test.index"], np.int64, 1)[:, 0]
    if not len(test_index):
        raise DamagedFile(part["test.index"], "is empty")
    require_once(part["test.index"], test_index)
    known = matrices["allx"].shape[0]
    num_nodes = max(known, int(test_index.max()) + 1)
    if len(test_index) != matrices["tx"].shape[0] or test_index.min() < known:
        raise DamagedFile(
            part["test.index"],
            f"lists {len(test_index)} test nodes from {test_index.min()}, but tx has "
            f"{matrices['tx'].shape[0]} rows and the other nodes end at {known - 1}",
            both=True,
        )

    # Row r of the stacked matrix describes node owner[r]; a node no row describes keeps
    # an empty row.
    stacked = scipy.sparse.vstack([matrices["allx"], matrices["tx"]], format="coo")
    owner = np.concatenate([np.arange(known), test_index])
    x = scipy.sparse.csr_array(
        (stacked.data, (owner[stacked.row], stacked.col)),
        shape=(num_nodes, stacked.shape[1]),
    )
    labels = np.full(num_nodes, UNLABELLED, dtype=np.int64)
    labels[owner] = np.concatenate([one_hot["ally"], one_hot["ty"]])

    masks = {
        "train_mask": np.arange(len(one_hot["y"])),
        "val_mask": np.arange(len(one_hot["y"]), len(one_hot["y"]) + _VALIDATION_NODES),
        "test_mask": test_index,
    }
    return make_graph(
        num_nodes,
        x=x,
        edge_index=_edges(part["graph"], num_nodes),
        y=labels,
        **{name: np.isin(np.arange(num_nodes), nodes) for name, nodes in masks.items()},
    )


def _load_matrix(path: Path) -> scipy.sparse.csr_array:
    value = load_pickle(path)
    if not isinstance(value, scipy.sparse.csr_array):
        raise DamagedFile(path, "holds no sparse matrix")
    return value


def _one_hot_labels(path: Path) -> np.ndarray:
    value = load_pickle(path)
    if not isinstance(value, np.ndarray) or value.ndim != 2 or value.dtype.kind != "i":
        raise DamagedFile(path, "holds no one-hot labels")
    return np.where(value.any(axis=1), value.argmax(axis=1), UNLABELLED)


def _edges(path: Path, num_nodes: int) -> np.ndarray:
    neighbours = load_pickle(path)
    if not isinstance(neighbours, dict):
        raise DamagedFile(path, "holds no adjacency lists")
    counts = [len(targets) for targets in neighbours.values()]
    source = np.repeat(np.fromiter(neighbours, np.int64, len(counts)), counts)
    flat = (node for targets in neighbours.values() for node in targets)
    target = np.fromiter(flat, np.int64, sum(counts))
    return deduplicate(np.stack([source, target]), num_nodes, drop_loops=True)


class _Record:
    """A pickled object reduced to the arguments and the state it was given."""

    arguments: tuple[Any, ...] = ()
    state: Any = None

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Table(_Record):
    def column(self, name: str) -> np.ndarray:
        """A column of a pickled table.

        The state holds a manager of blocks; a block is a matrix with one row per
        column, and the positions of those columns in the table. Before pandas 1.3 the
        manager has them in its state, since then they are its arguments.
        """
        manager = self.state.get("_mgr") or self.state["_data"]
        if manager.arguments:
            blocks, axes = manager.arguments
            parts = [block.arguments[:2] for block in blocks]
        else:
            kept = manager.state[3]["0.14.1"]
            axes = kept["axes"]
            parts = [(block["values"], block["mgr_locs"]) for block in kept["blocks"]]
        position = list(axes[0].arguments[1]["data"]).index(name)
        for values, places in parts:
            if isinstance(places, slice):
                places = range(places.start, places.stop, places.step or 1)
            for row, place in enumerate(places):
                if place == position:
                    return cast(np.ndarray, values[row])
        raise pickle.UnpicklingError(f"a table without the column {name}")


def _plain_dict(*_factory: object) -> dict[Any, Any]:
    """Replaces a defaultdict, whose factory is not needed once it is filled."""
    return {}


class _Module(str):
    """A module that dill names; it is not imported."""


def _attribute(owner: object, name: str) -> Any:
    """What dill looks up in a module, if it is on the list."""
    if not isinstance(owner, _Module):
        return _Record
    if (owner, name) not in _ALLOWED:
        raise pickle.UnpicklingError(f"a reference to {owner}.{name}")
    return _ALLOWED[owner, name]


def _type_by_name(name: str) -> Any:
    """The type that dill calls like this; those of functions are plain records."""
    return {"slice": slice, "dict": dict, "list": list, "int": int}.get(name, _Record)


def _filled_array(make: Any, arguments: Any, state: Any, *_attributes: object) -> Any:
    array = make(*arguments)
    array.__setstate__(state)
    return array


def _scalar(kind: TypeRecord, content: bytes) -> Any:
    return np.frombuffer(content, kind.dtype)[0]


_ALLOWED: Mapping[tuple[str, str], Any] = {
    **PLAIN_DATA,
    ("builtins", "slice"): slice,
    ("__builtin__", "slice"): slice,
    ("builtins", "int"): int,
    ("__builtin__", "int"): int,
    ("collections", "defaultdict"): _plain_dict,
    # dill names the compiled module.
    **{
        (f"numpy.{package}.{module}", name): builder
        for package in ("core", "_core")
        for module in ("multiarray", "_multiarray_umath")
        for name, builder in (
            ("_reconstruct", np.empty(0).__reduce__()[0]),
            ("scalar", _scalar),
        )
    },
    ("pandas.core.frame", "DataFrame"): _Table,
    ("pandas", "DataFrame"): _Table,
    ("pandas.core.internals.managers", "BlockManager"): _Record,
    ("pandas._libs.internals", "_unpickle_block"): _Record,
    ("pandas.core.indexes.base", "_new_Index"): _Record,
    ("pandas.core.indexes.base", "Index"): _Record,
    ("pandas", "Index"): _Record,
    ("pandas", "RangeIndex"): _Record,
    ("pandas.core.indexes.range", "RangeIndex"): _Record,
    ("pandas.core.indexes.numeric", "Int64Index"): _Record,
    ("dill._dill", "_import_module"): _Module,
    ("dill._dill", "_get_attr"): _attribute,
    ("dill._dill", "_load_type"): _type_by_name,
    ("dill._dill", "_create_array"): _filled_array,
    ("dill._dill", "_create_function"): _Record,
    ("dill._dill", "_create_code"): _Record,
    ("dill._dill", "_create_cell"): _Record,
    # The global names of the functions.
    ("__builtin__", "__main__"): _Record,
}
_TORCH_MAGIC = 0x1950A86A20F9469CFC6C
# A user's own Python can read what is refused here; plain data is then read.
_SAVE_AGAIN = (
    "if you trust the file, keep it for H2GB and take plain data in its place, which "
    "Python with H2GB writes: `import torch; plain = lambda v: v.to_dict('list') if "
    "hasattr(v, 'to_dict') else {{k: plain(x) for k, x in v.items()}} if hasattr(v, "
    "'items') else v; torch.save(plain(torch.load({name!r}, weights_only=False)), "
    "'plain.pt')` (torch before 1.13 has no weights_only), then call plain.pt {name}; "
    "otherwise get a good copy"
)


def read_oag(paths: dict[str, Path]) -> HeteroData:
    """Reads a subset: papers are classified by journal, and split by year.

    As in H2GB, venues are labels, not nodes. Relations within one node type get edges
    in both directions, and every other relation gets a reverse type.
    """
    (path,) = paths.values()
    try:
        return _build(_load(path))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        problem = f"does not hold a graph as H2GB writes it ({reason})"
    except pickle.UnpicklingError as error:
        problem = f"holds {error}"
    except DamagedFile as error:
        problem = error.problem
    raise DamagedFile(path, problem, remedy=_SAVE_AGAIN.format(name=path.name))


def _load(path: Path) -> Any:
    """The content of a file that torch saved."""
    try:
        with open(path, "rb") as stream:
            if not zipfile.is_zipfile(stream):
                stream.seek(0)
                # A number, the version and facts about the machine come first.
                if load_pickle_stream(stream, path, {}) != _TORCH_MAGIC:
                    raise DamagedFile(path, "is not a file that torch saved")
                for _ in range(2):
                    load_pickle_stream(stream, path, PLAIN_DATA)
                return load_pickle_stream(stream, path, _ALLOWED)
            with zipfile.ZipFile(stream) as container:
                inside = [n for n in container.namelist() if n.endswith("/data.pkl")]
                if len(inside) != 1:
                    raise zipfile.BadZipFile("it has no data.pkl")
                with container.open(inside[0]) as member:
                    return load_pickle_stream(member, path, _ALLOWED)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise DamagedFile(path, f"is not a complete torch file ({error})") from error


def _column(table: Any, name: str) -> Any:
    """A column of a table that pandas saved, or of a dict of columns."""
    return table.column(name) if isinstance(table, _Table) else table[name]


def _build(content: dict[str, Any]) -> HeteroData:
    data = HeteroData()
    for kind, numbers in content["node_forward"].items():
        if kind == _VENUE:
            continue
        table = content["node_feature"][kind]
        for row, identifier in enumerate(_column(table, "id")):
            if numbers[identifier] != row:
                raise ValueError(f"row {row} of {kind} belongs to node {identifier}")
        data[kind].num_nodes = len(numbers)
        vectors = _column(table, "emb")
        features = np.empty((len(numbers), len(vectors[0])), np.float32)
        for row, embedding in enumerate(vectors):
            features[row] = embedding
        data[kind].x = as_tensor(features)
    for target, by_source in content["edge_list"].items():
        for source, by_relation in by_source.items():
            for relation, links in by_relation.items():
                if not relation.startswith("rev_") and _VENUE not in (source, target):
                    _add_relation(data, (source, relation, target), links)
    papers = data[_TARGET]
    venues = content["edge_list"][_VENUE][_TARGET][_LABEL_RELATION]
    labels = _journals(venues, papers.num_nodes)
    times = _column(content["node_feature"][_TARGET], "time")
    years = np.asarray(times, dtype=np.int64)
    labelled = labels != UNLABELLED
    papers.y, papers.year = as_tensor(labels), as_tensor(years)
    papers.train_mask = as_tensor(labelled & (years <= _LAST_TRAINING_YEAR))
    papers.val_mask = as_tensor(labelled & (years == _VALIDATION_YEAR))
    papers.test_mask = as_tensor(labelled & (years > _VALIDATION_YEAR))
    return data


def _add_relation(
    data: HeteroData, kind: tuple[str, str, str], links: dict[int, dict[int, Any]]
) -> None:
    count = sum(len(sources) for sources in links.values())
    if count == 0:
        return
    ends = np.empty((2, count), dtype=np.int64)
    flat = (node for sources in links.values() for node in sources)
    ends[0] = np.fromiter(flat, np.int64, count)
    lengths = [len(sources) for sources in links.values()]
    ends[1] = np.repeat(np.fromiter(links, np.int64, len(links)), lengths)
    for values, owner in zip(ends, (kind[0], kind[2]), strict=True):
        if values.min() < 0 or values.max() >= data[owner].num_nodes:
            raise ValueError(f"an edge of {kind} leads outside the graph")
    add_relation(data, kind, ends)


def _journals(venues: dict[int, dict[int, Any]], num_papers: int) -> np.ndarray:
    """Classes are the journals, numbered as they come; the last of several counts."""
    labels = np.full(num_papers, UNLABELLED, dtype=np.int64)
    used = [papers for papers in venues.values() if papers]
    for number, papers in enumerate(used):
        labels[list(papers)] = number
    return labels
