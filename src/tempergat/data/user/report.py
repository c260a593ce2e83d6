"""Reports what a user graph holds and what loading will do with it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tempergat.base import listed
from tempergat.data.dataset import UNLABELLED, node_counts
from tempergat.data.homophily_measures import h2_index, homophily
from tempergat.data.layouts.array_folder import is_array_folder, read_array_folder
from tempergat.data.splits import DEFAULT_SPLIT, DEFAULT_SPLIT_SEED
from tempergat.data.user.direction import planned_direction, reverse_share
from tempergat.data.user.feature_report import Finding, feature_findings
from tempergat.data.user.labels import NoLabels
from tempergat.data.user.loading import read_user_graph, target_type
from tempergat.data.user.options import ReadOptions
from tempergat.data.user.splits import check_masks, given_masks, numbered_splits
from tempergat.data.user.user_graph import UserGraph
from tempergat.data.user.validate import (
    check_features,
    check_labels,
    classes_in_splits,
    edge_stores,
)

_SHOWN_CLASSES = 20


def check_graph(path: Path, options: ReadOptions | None = None) -> list[Finding]:
    """Reports what a user graph holds.

    Args:
        path: A folder of tables, an `.npz` or a `.pt`.
        options: How it is read; the defaults when left out.

    Raises:
        UserError: The files cannot be read, or contradict themselves.
    """
    if is_array_folder(path):
        return _check_array_folder(path, options or ReadOptions())
    options = options or ReadOptions()
    try:
        read = read_user_graph(path, options, require_finite=False)
        kind = target_type(str(path), read.data, options.target)
        read = check_labels(str(path), read, kind)
    except NoLabels:
        read = read_user_graph(path, options, require_finite=False, labelled=False)
        kind = None if isinstance(read.data, Data) else options.target
    data = read.data
    store = data if kind is None else data[kind]
    is_labelled = isinstance(store.get("y"), Tensor) and (store.y != UNLABELLED).any()
    check_features(str(path), data)
    edges = edge_stores(str(path), data)
    findings = [_nodes(data)]
    if is_labelled:
        findings.append(Finding("classes", int(store.y.max()) + 1))
    else:
        action = "predict can classify its nodes; compare and train need labels"
        findings.append(Finding("labels", "none", action))
    if kind is not None:
        findings.insert(1, Finding("classified node type", kind))
    touched = {name: np.zeros(n, dtype=bool) for name, n in node_counts(data).items()}
    for types, edge_store, sizes in edges:
        ends = edge_store.edge_index.numpy()
        findings += _edges(types, ends, sizes, read, options)
        source, end = ("", "") if types is None else (types[0], types[2])
        apart = (
            ends[0] != ends[1] if source == end else np.ones(len(ends[0]), dtype=bool)
        )
        touched[source][ends[0][apart]] = True
        touched[end][ends[1][apart]] = True
    isolated = {name: int((~mask).sum()) for name, mask in touched.items()}
    findings.append(
        Finding(
            "isolated nodes",
            isolated if kind is not None else isolated[""],
            "kept; with a self-loop each attends to its own features",
        )
    )
    if is_labelled:
        findings += _labels(store.y.numpy(), read)
        findings += _split(path, store, read.class_names)
    for node_store in data.node_stores:
        names = read.feature_names if node_store is store or data is store else None
        findings += feature_findings(node_store, names)
    if is_labelled:
        findings += _homophily_findings(data, kind, store.y.numpy())
    return findings


def _check_array_folder(path: Path, options: ReadOptions) -> list[Finding]:
    """What a folder of arrays holds, as far as it costs no memory."""
    try:
        read = read_array_folder(path, options, labelled=True, verify=True)
        unread = read.notes
        read = check_labels(str(path), read, None)
    except NoLabels:
        read = read_array_folder(path, options, labelled=False, verify=True)
        unread = read.notes
    data = read.data
    findings = [
        Finding("nodes", int(data.num_nodes)),
        Finding("edges", int(data.edge_index.size(1)), "followed as they are listed"),
        Finding("features", int(data.x.size(1))),
    ]
    findings += [Finding("not read", note) for note in unread]
    if "y" not in data:
        action = "predict can classify its nodes; compare and train need labels"
        return [*findings, Finding("labels", "none", action)]
    findings.append(Finding("classes", int(data.y.max()) + 1))
    findings += _labels(data.y.numpy(), read)
    return findings + _split(path, data, read.class_names)


def _nodes(data: Data | HeteroData) -> Finding:
    counts = node_counts(data)
    return Finding("nodes", counts if isinstance(data, HeteroData) else counts[""])


def _edges(
    types: tuple[str, str, str] | None,
    ends: np.ndarray,
    sizes: tuple[int, int],
    read: UserGraph,
    options: ReadOptions,
) -> list[Finding]:
    where = "" if types is None else f" {'-'.join(types)}"
    keys = np.sort(ends[0] * sizes[1] + ends[1])
    repeated = int((keys[1:] == keys[:-1]).sum())
    findings = [
        Finding(f"edges{where}", ends.shape[1]),
        Finding(f"repeated edges{where}", repeated, "merged into one"),
    ]
    if types is None or types[0] == types[2]:
        loops = int((ends[0] == ends[1]).sum())
        action = "kept; a layer that adds self-loops puts exactly one on every node"
        findings.append(Finding(f"self-loops{where}", loops, action))
        back = np.sort(ends[1] * sizes[1] + ends[0])
        one_way = int((~np.isin(np.unique(keys), back)).sum())
        distinct = np.unique(ends, axis=1)
        share = reverse_share(distinct, max(sizes))
        action = planned_direction(share, read, options) if types is None else "kept"
        findings.append(Finding(f"one-way edges{where}", one_way, action))
    return findings


def _labels(labels: np.ndarray, read: UserGraph) -> list[Finding]:
    labelled = labels[labels != UNLABELLED]
    counts = np.bincount(labelled)
    names = read.class_names or [str(number) for number in range(len(counts))]
    by_size = np.argsort(-counts, kind="stable")[:_SHOWN_CLASSES]
    shown = {names[at]: int(counts[at]) for at in sorted(by_size)}
    rest = len(counts) - len(shown)
    found = Finding("nodes of each class", shown)
    if rest:
        found = Finding(f"nodes of the {len(shown)} largest classes", shown)
    return [
        Finding(
            "unlabelled nodes",
            len(labels) - len(labelled),
            "kept in the graph, in no split",
        ),
        Finding(
            "nodes per class",
            {"fewest": int(counts.min()), "most": int(counts.max())},
            f"guessing the largest class scores {counts.max() / len(labelled):.1%}",
        ),
        found,
    ]


def _split(path: Path, store: Any, class_names: Sequence[str] | None) -> list[Finding]:
    masks = given_masks(str(path), store)
    if not masks:
        made = f"made: {DEFAULT_SPLIT} with seed {DEFAULT_SPLIT_SEED}, by class"
        return [Finding("split", "none given", made)]
    sizes = {name.removesuffix("_mask"): mask.sum(0) for name, mask in masks.items()}
    splits = numbered_splits(masks)
    if not splits:
        check_masks(str(path), store.y, masks)
        counts = {part: int(size) for part, size in sizes.items()}
        found = Finding("split", counts, "used as given")
        return [found, *_classes_in_no_split(store.y.numpy(), masks, class_names)]
    for number, split in enumerate(splits):
        check_masks(f"{path}, split {number}", store.y, split)
    action = "used as given: the first, or the one that a number or a seed chooses"
    findings = [Finding("splits", len(splits), action)]
    for part, size in sizes.items():
        ends = {"fewest": int(size.min()), "most": int(size.max())}
        findings.append(Finding(f"{part} nodes per split", ends))
    return findings + _classes_in_no_split(store.y.numpy(), masks, class_names)


def _classes_in_no_split(
    labels: np.ndarray, masks: dict[str, Tensor], class_names: Sequence[str] | None
) -> list[Finding]:
    """Says which classes are left out, because they are in no split."""
    kept = classes_in_splits(labels, masks)
    lost = np.setdiff1d(labels[labels != UNLABELLED], kept)
    if not len(kept) or not len(lost):
        return []
    names = [str(at) if class_names is None else class_names[at] for at in lost]
    action = (
        f"left out, so that {len(kept)} of {len(kept) + len(lost)} classes are used; "
        f"--split {DEFAULT_SPLIT} makes a split with all classes"
    )
    return [Finding("classes in no split", listed(names), action)]


def _homophily_findings(
    data: Data | HeteroData, kind: str | None, labels: np.ndarray
) -> list[Finding]:
    if isinstance(data, HeteroData):
        inside = [data[t].edge_index for t in data.edge_types if t[0] == t[2] == kind]
        ends = torch.cat(inside, dim=1).numpy() if inside else np.empty((2, 0), int)
    else:
        ends = data.edge_index.numpy()
    measured = homophily(ends[:, ends[0] != ends[1]], labels)
    findings = [
        Finding("edge homophily", _rounded(measured.edge)),
        Finding("node homophily", _rounded(measured.node)),
        Finding("adjusted homophily", _rounded(measured.adjusted)),
    ]
    if isinstance(data, HeteroData) and kind is not None:
        findings.append(Finding("H2Index", _rounded(h2_index(data, kind))))
    return findings


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
