"""What becomes of a user graph as it was read: checked, normalised, with its splits."""

from dataclasses import fields, replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from tempergat.base import UserError, listed, one_line
from tempergat.data.dataset import MASKS, UNLABELLED, Dataset, hash_tensors
from tempergat.data.features import note_on_scales, scaling_of
from tempergat.data.splits import GraphWithSplits
from tempergat.data.user.edges import merge_edges, note_one_way_types, set_direction
from tempergat.data.user.node_features import make_features, telling_features
from tempergat.data.user.options import in_python
from tempergat.data.user.reading import Reading, UserGraph
from tempergat.data.user.splits import (
    drop_unused_classes,
    given_masks,
    note_unseen_classes,
)
from tempergat.data.user.validate import check_edges, check_features, require_finite


def with_splits(read: UserGraph, reading: Reading) -> GraphWithSplits:
    """Normalises a graph that `read_user_graph` returned, in place, and its splits.

    Raises:
        UserError: The graph contradicts itself.
    """
    name, options, labelled = reading.name, reading.options, reading.labelled
    # What is mapped stays as it is.
    if not read.mapped_hashes:
        read = _normalise(read, reading)
    masks: dict[str, Tensor] = {}
    if labelled:
        masks = given_masks(name, read.store) if reading.use_masks else {}
        read = drop_unused_classes(read, masks, reading) if masks else read
        _note_leaks(read, masks, reading)
        if masks:
            note_unseen_classes(read, masks, reading)
    hashes = hash_tensors(read.data, read.mapped_hashes) | _drop_unused_columns(read)
    scaling = scaling_of(read.data) if read.has_columns else {}
    if options.make_features is not None:
        scaling.pop(".x", None)
    if not read.has_columns:
        reading.notes.extend(note_on_scales(name, read.data))
    unsplit = replace(
        Dataset(**{field.name: getattr(read, field.name) for field in fields(Dataset)}),
        name=name,
        predicted=replace(
            read.predicted, width=int(read.store.y.max()) + 1 if labelled else 0
        ),
        read_options=replace(options, **reading.learned),
        scaling=scaling,
        # Columns and classes may be called anything.
        notes=tuple(map(one_line, reading.notes)),
    )
    if not labelled:
        empty = torch.zeros(len(unsplit.store.y), dtype=torch.bool)
        return GraphWithSplits(unsplit, hashes, dict.fromkeys(MASKS, empty), "none")
    words = "given with the graph"
    return GraphWithSplits(
        unsplit, hashes, masks, words, stratified=True, given_by=name
    )


def _normalise(read: UserGraph, reading: Reading) -> UserGraph:
    """Checks features and edges of a graph and normalises them in place.

    Edges are sorted and repeated ones merged. Features become float32. Features are
    made where the options say so.

    Raises:
        UserError: The graph contradicts itself.
    """
    source, data, options = reading.name, read.data, reading.options
    check_features(source, data)
    require_finite(source, data)
    undirected = None
    for kind, edges, sizes in check_edges(source, data, widen=True):
        bound = max(sizes)
        name = source if kind is None else f"{'__'.join(kind)} in {source}"
        merge_edges(name, edges, bound, reading.notes)
        if kind is None:
            undirected = set_direction(edges, bound, read, reading)
        elif options.directed is False and read.keeps_direction:
            raise UserError(
                f"directed is False, but {source} has the edge type {kind}; add the "
                "reverse edges with torch_geometric.transforms.ToUndirected"
            )
    if read.target is not None and not options.directed:
        note_one_way_types(data, read.target, reading)
    read = replace(read, undirected=undirected)
    if options.make_features is None:
        return read
    made = in_python("make_features")
    if not isinstance(data, Data):
        raise UserError(f"{source} has node types; leave --make-features out {made}")
    if isinstance(data.get("x"), Tensor):
        raise UserError(
            f"{source} has {data.x.shape[1]} features; leave --make-features out {made}"
        )
    data.x, names = make_features(
        options.make_features, source, data.edge_index.numpy(), data.num_nodes
    )
    return replace(read, feature_names=names)


def _note_leaks(read: UserGraph, masks: dict[str, Tensor], reading: Reading) -> None:
    """Notes features that tell the class of all training nodes."""
    store = read.store
    if store.get("x") is None:
        return
    known = store.y != UNLABELLED
    if masks:
        known = known & masks[MASKS[0]].reshape(len(known), -1)[:, 0]
    telling, is_alone = telling_features(store.x, store.y, torch.nonzero(known)[:, 0])
    if not telling:
        return
    names = listed([read.column_name(".x", at) for at in telling])
    what = f"features {names} together tell", "they", "them"
    if is_alone:
        what = f"feature {names} alone tells", "it", "it"
    reading.notes.append(
        f"{reading.name}: the {what[0]} the class of all training nodes, so {what[1]} "
        f"may be the label in other words; leave {what[2]} out with --features "
        f"{in_python('features')}"
    )


def _drop_unused_columns(read: UserGraph) -> dict[str, str]:
    """Removes edge features and weights that were not asked for.

    Returns:
        Lines for the fingerprint. They tell a graph whose edge attributes are used
        from the same graph without: both hold the attributes when they are hashed.
    """
    lines = {}
    for name, columns in (
        ("edge_attr", read.edge_feature_names),
        ("edge_weight", read.edge_weight_name),
    ):
        if columns:
            lines[f"use of {name}"] = f"{name} is {columns}\n"
        elif isinstance(read.data, Data):
            read.data.pop(name, None)
    return lines
