"""The graph to predict on, read and arranged as the training graph was."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError, one_line
from tempergat.data import (
    Dataset,
    GraphInput,
    ReadOptions,
    as_dataset,
    is_typed_folder,
    match_features,
    named_entry,
    option_flag,
    refuse_other_columns,
    refuse_unused_options,
    scale_of,
    tensors,
)
from tempergat.training.graphs.inputs import types_of
from tempergat.training.single.metadata import Metadata
from tempergat.training.tasks import refuse_other_training, refuse_typed

_WAYS = {True: "both ways", False: "one way"}
_FLAGS = {True: "--undirected", False: "--directed"}
# What a PyG object, which has no tables, can be read by.
_OBJECT_OPTIONS = ("directed", "make_features", "edge_features", "edge_weight")


def read_for_prediction(
    graph: GraphInput,
    metadata: Metadata,
    options: ReadOptions | None,
    labelled: bool = False,
) -> Dataset:
    """Reads a graph as the training graph was read; see `TrainedModel.read_graph`.

    Returns:
        The graph with its features in the order of training, and the scaling of the
        training graph. Its notes also say where it differs from that graph.

    Raises:
        UserError: It cannot be read, or lacks something that the model needs.
    """
    _refuse_before_reading(graph, metadata, options)
    used = _options(graph, metadata, options)
    try:
        dataset = as_dataset(graph, labelled=labelled, options=used)
    except UserError as error:
        if metadata.feature_names is not None and isinstance(graph, str | os.PathLike):
            refuse_other_columns(Path(graph), metadata.feature_names, used)
        origin = _origin_of_option(str(error), used, options)
        raise UserError(f"{error}{origin}") from error
    _refuse_missing_columns(dataset, options)
    _refuse_other_kind(dataset, metadata)
    refuse_other_training(dataset, metadata.config)
    is_path = isinstance(graph, str | os.PathLike)
    notes = list(_differences(dataset, metadata, is_path))
    if metadata.feature_names is not None:
        dataset = match_features(dataset, metadata.feature_names)
    for kind in metadata.node_types or ():
        if kind.feature_names is not None and kind.name in dataset.data.node_types:
            dataset = match_features(dataset, kind.feature_names, kind.name)
    _refuse_other_counts(dataset, metadata)
    dataset = replace(dataset, scaling=metadata.scaling)
    notes += _other_units(dataset, metadata)
    new = [note for note in notes if note not in dataset.notes]
    return replace(dataset, notes=(*dataset.notes, *new))


def typed_dataset(x: Any, edge_index: Any, metadata: Metadata) -> Dataset:
    """A typed graph that is given by its features and edges, by type.

    Raises:
        UserError: A node type that the model needs is missing, or it does not know one.
    """
    types = metadata.node_types or ()
    for given, name, key in ((x, "x", "node"), (edge_index, "edge_index", "edge")):
        if not isinstance(given, Mapping):
            raise UserError(
                f"{name} must be a dict with a tensor for each {key} type, as "
                f"data.{name}_dict has it, got {type(given).__name__}"
            )
    data = HeteroData()
    for kind in types:
        data[kind.name].num_nodes = kind.num_nodes
        if kind.num_features:
            if kind.name not in x:
                raise UserError(f"x has no features of the node type {kind.name}")
            data[kind.name].x = x[kind.name]
            data[kind.name].num_nodes = x[kind.name].size(0)
    for edge_type, ends in edge_index.items():
        if not {edge_type[0], edge_type[-1]} <= {kind.name for kind in types}:
            raise UserError(
                f"edge_index has the edge type {edge_type!r}, but the model was "
                f"trained on the node types {', '.join(kind.name for kind in types)}"
            )
        data[edge_type].edge_index = ends
    return Dataset(
        "graph",
        data,
        types[0].name,
        metadata.predicted,
        "accuracy",
        "",
        "",
        scaling=metadata.scaling,
    )


def _refuse_before_reading(
    graph: GraphInput, metadata: Metadata, given: ReadOptions | None
) -> None:
    """Refuses what the reader of a graph without labels does not object to."""
    if isinstance(graph, str | os.PathLike):
        if named_entry(graph) is not None:
            return
        path = Path(graph)
        if metadata.node_types is None and path.is_dir() and is_typed_folder(path):
            raise UserError(
                f"{path} has tables of node types, but the model was trained on a "
                "graph with one type of nodes; give a folder with nodes.csv and "
                "edges.csv, or train a model on a typed graph"
            )
        if given is not None:
            refuse_unused_options(path, given)
    elif isinstance(graph, Data | HeteroData) and given is not None:
        refuse_unused_options(graph, given)


def _options(
    graph: GraphInput, metadata: Metadata, given: ReadOptions | None
) -> ReadOptions | None:
    """The options of training, changed by those given now."""
    is_file = isinstance(graph, str | os.PathLike) and named_entry(graph) is None
    if metadata.node_types is not None and (is_file or isinstance(graph, HeteroData)):
        # Without labels, the node types do not say which one to classify.
        given = given or ReadOptions()
        given = replace(given, target=given.target or metadata.node_types[0].name)
    stored = metadata.read_options
    is_object = isinstance(graph, Data | HeteroData)
    if stored is None or not (is_file or is_object):
        return given
    if is_object or Path(str(graph)).suffix == ".pt":
        stored = ReadOptions(**{n: getattr(stored, n) for n in _OBJECT_OPTIONS})
    elif metadata.undirected is not None:
        stored = replace(stored, directed=not metadata.undirected)
    changes = {} if given is None else {n: getattr(given, n) for n in given.given()}
    return replace(stored, **changes)


def _origin_of_option(
    message: str, used: ReadOptions | None, given: ReadOptions | None
) -> str:
    """Says that an option in an error message is the model's, not the user's."""
    by_user = [] if given is None else given.given()
    names = [] if used is None else used.given()
    for name in names:
        if name not in by_user and message.startswith(f"{option_flag(name)} "):
            return (
                f" ({option_flag(name)} comes from the model, which was trained with "
                "it; give a graph that has the same)"
            )
    return ""


def _refuse_missing_columns(dataset: Dataset, given: ReadOptions | None) -> None:
    """Refuses a label or a split that the user names now; those of training may be
    missing.
    """
    if given is None:
        return
    for option, name, present, need in (
        ("label", given.label, dataset.label_name, "labels"),
        ("split_column", given.split_column, dataset.split_name, "split"),
    ):
        if name is not None and (present is None or present.lower() != name.lower()):
            raise UserError(
                f"{option_flag(option)} names {name!r}, but {dataset.name} has no such "
                f"column; leave it out: nodes to classify need no {need}"
            )


def _differences(dataset: Dataset, metadata: Metadata, is_path: bool) -> Iterator[str]:
    """Says where a graph, before its features are matched, is not as in training."""
    is_table = is_path and dataset.read_options is not None
    types = [kind for kind in metadata.node_types or () if kind.num_features]
    is_named = metadata.feature_names is not None
    if types:
        is_named = all(kind.feature_names is not None for kind in types)
    if not is_named and (is_table or dataset.feature_names is not None):
        count = "" if types else f"{metadata.in_channels} "
        yield (
            f"the model knows no feature names, so the {count}features of "
            f"{dataset.name} are used in the order in which they come; to have them "
            "matched by name, train on a table with named columns"
        )
    before, now = metadata.undirected, dataset.undirected
    if before is not None and now is not None and before != now:
        yield (
            f"edges of {dataset.name} are followed {_WAYS[now]}, but the model was "
            f"trained with edges followed {_WAYS[before]}; {_FLAGS[before]} changes "
            "that"
        )
    if not dataset.data.num_edges and metadata.config.method != "mlp":
        yield (
            f"{dataset.name} has no edges, so that each node is classified by its own "
            "features alone"
        )
    without = "the model was trained without"
    if dataset.edge_feature_names and not metadata.edge_feature_names:
        listed = ", ".join(dataset.edge_feature_names)
        yield f"edge features of {dataset.name} are not used ({listed}): {without}"
    if dataset.edge_weight_name and not metadata.edge_weight_name:
        name = dataset.edge_weight_name
        yield f"the edge weight of {dataset.name} is not used ({name}): {without}"


def _other_units(dataset: Dataset, metadata: Metadata) -> list[str]:
    """Says which columns are far from those of the training graph."""
    values = dict(tensors(dataset.data))
    notes = []
    for name, before in {**metadata.scaling, **metadata.columns}.items():
        x = values.get(name)
        if x is None or not len(x):
            continue
        now = scale_of(x)
        for at in before.far_columns(now, len(x)):
            notes.append(
                f"{dataset.column_name(name, at)} has mean {now.mean[at]:.6g} and "
                f"deviation {now.deviation[at]:.6g} in {dataset.name}, but had "
                f"{before.mean[at]:.6g} and {before.deviation[at]:.6g} in the training "
                "graph; if its unit is another one, convert it"
            )
    return [one_line(note) for note in notes]


def _refuse_other_counts(dataset: Dataset, metadata: Metadata) -> None:
    if dataset.is_heterogeneous:
        _refuse_other_types(dataset, metadata)
        return
    features = int(dataset.data.x.size(1))
    if features != metadata.in_channels:
        raise UserError(
            f"{dataset.name} has {features} features per node, but the model was "
            f"trained on {metadata.in_channels}; give a graph with the same features"
        )
    for what, wanted, present, option in (
        (
            "edge features",
            metadata.edge_feature_names,
            dataset.edge_feature_names,
            "--edge-features",
        ),
        (
            "edge weight",
            filter(None, [metadata.edge_weight_name]),
            filter(None, [dataset.edge_weight_name]),
            "--edge-weight",
        ),
    ):
        names, others = list(wanted), list(present)
        if names and others != names:
            raise UserError(
                f"the model was trained with the {what} {', '.join(names)}, but "
                f"{dataset.name} has {', '.join(others) or 'none'}; name them with "
                f"{option}"
            )


def _refuse_other_types(dataset: Dataset, metadata: Metadata) -> None:
    present = {kind.name: kind for kind in types_of(dataset) or ()}
    wanted = {kind.name: kind for kind in metadata.node_types or ()}
    if list(present) != list(wanted):
        raise UserError(
            f"the model was trained on the node types {', '.join(wanted)}, but "
            f"{dataset.name} has {', '.join(present)}; give a graph with the same "
            "types in the same order, and the same --target"
        )
    for name, kind in wanted.items():
        here = present[name]
        if here.num_features != kind.num_features:
            raise UserError(
                f"nodes of type {name} of {dataset.name} have {here.num_features} "
                f"features, but the model was trained on {kind.num_features}; give a "
                "graph with the same features"
            )
        if not kind.num_features and here.num_nodes != kind.num_nodes:
            raise UserError(
                f"the model learned a vector for each of {kind.num_nodes} nodes of "
                f"type {name}, but {dataset.name} has {here.num_nodes}; give a graph "
                "with the same nodes of that type"
            )
        names = dataset.type_names.get(name)
        if names is not None and kind.nodes_hash not in (None, names.nodes_hash):
            raise UserError(
                f"the model learned a vector for each node of type {name}, but "
                f"{dataset.name} has other ids there, or the same in another order; "
                "give a graph with the same nodes of that type in the same order"
            )


def _refuse_other_kind(dataset: Dataset, metadata: Metadata) -> None:
    if metadata.node_types is None:
        refuse_typed(dataset, "the model")
    elif not dataset.is_heterogeneous:
        names = ", ".join(kind.name for kind in metadata.node_types)
        raise UserError(
            f"{dataset.name} has one type of nodes, but the model was trained on the "
            f"types {names}; give a typed graph (HeteroData)"
        )
