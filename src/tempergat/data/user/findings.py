"""What a user graph holds: its nodes, edges, labels, splits and features."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tempergat.base import listed
from tempergat.data.dataset import MASKS, UNLABELLED, Target, node_counts
from tempergat.data.features import column_blocks, column_kinds
from tempergat.data.homophily_measures import estimate_h2_index, homophily
from tempergat.data.splits import DEFAULT_SPLIT, DEFAULT_SPLIT_SEED
from tempergat.data.user.edges import decide_direction, reverse_share
from tempergat.data.user.reading import Reading, UserGraph
from tempergat.data.user.splits import (
    check_masks,
    classes_in_splits,
    each_split,
    given_masks,
)
from tempergat.data.user.validate import check_edges, check_features

_SHOWN_CLASSES = 20
SHOWN_FEATURES = 20


@dataclass(frozen=True)
class Finding:
    """One thing that a graph holds.

    Attributes:
        subject: What it is about.
        value: A number, a text, or several by name.
        action: What loading does about it; "" where nothing needs doing.
    """

    subject: str
    value: Any
    action: str = ""


_UNLABELLED = Finding(
    "labels", "none", "predict can classify its nodes; compare and train need labels"
)


def findings_on(read: UserGraph, reading: Reading) -> list[Finding]:
    """What a graph holds before its edges are merged and reversed.

    Of a folder of arrays it is what costs no memory.

    Raises:
        UserError: Features, edges or splits contradict themselves.
    """
    data, store, labelled = read.data, read.store, reading.labelled
    classes = Finding("classes", int(store.y.max()) + 1) if labelled else _UNLABELLED
    if read.mapped_hashes:
        unread = [note for note in reading.notes if "not read" in note]
        findings = [
            Finding("nodes", int(data.num_nodes)),
            Finding("edges", int(data.num_edges), "followed as they are listed"),
            Finding("features", int(data.x.size(1))),
            *(Finding("not read", note) for note in unread),
            classes,
        ]
    else:
        check_features(reading.name, data)
        findings, edges = _nodes_and_edges(read, reading)
        findings.insert(1, classes)
        if read.target is not None:
            findings.insert(1, Finding("classified node type", read.target))
    if labelled:
        findings += _labels(store.y.numpy(), read)
        findings += _split(reading.name, store, read.predicted)
    if read.mapped_hashes:
        return findings
    for node_store in data.node_stores:
        names = read.feature_names if node_store is store or data is store else None
        findings += _features(node_store, names)
    if labelled:
        findings += _homophily(data, read.target, store.y.numpy(), edges)
    return findings


def _nodes_and_edges(
    read: UserGraph, reading: Reading
) -> tuple[list[Finding], dict[tuple[str, str, str] | None, np.ndarray]]:
    """What to say of nodes and edges, and the edges as they are read, by their type."""
    data, edges = read.data, {}
    stores = check_edges(reading.name, data, widen=True)
    counts = node_counts(data)
    is_typed = isinstance(data, HeteroData)
    findings = [Finding("nodes", counts if is_typed else counts[""])]
    is_isolated = {name: np.ones(count, bool) for name, count in counts.items()}
    for types, store, sizes in stores:
        ends = store.edge_index.numpy()
        found, edges[types] = _edges(types, ends, sizes, read, reading)
        findings += found
        source, target = ("", "") if types is None else (types[0], types[2])
        if source == target:
            ends = ends[:, ends[0] != ends[1]]
        is_isolated[source][ends[0]] = False
        is_isolated[target][ends[1]] = False
    isolated = {name: int(mask.sum()) for name, mask in is_isolated.items()}
    action = "kept; with a self-loop each attends to its own features"
    value = isolated if is_typed else isolated[""]
    return [*findings, Finding("isolated nodes", value, action)], edges


def _edges(
    types: tuple[str, str, str] | None,
    ends: np.ndarray,
    sizes: tuple[int, int],
    read: UserGraph,
    reading: Reading,
) -> tuple[list[Finding], np.ndarray]:
    where = "" if types is None else f" {'-'.join(types)}"
    distinct = _distinct(ends, sizes[1])
    repeated = ends.shape[1] - distinct.shape[1]
    findings = [
        Finding(f"edges{where}", ends.shape[1]),
        Finding(f"repeated edges{where}", repeated, "merged into one"),
    ]
    if types is None or types[0] == types[2]:
        loops = int((ends[0] == ends[1]).sum())
        action = "kept; a layer that adds self-loops puts exactly one on every node"
        findings.append(Finding(f"self-loops{where}", loops, action))
        share = reverse_share(distinct, max(sizes))
        one_way = round((1 - share) * int((distinct[0] != distinct[1]).sum()))
        action = "kept"
        if types is None:
            is_added, action = decide_direction(share, read, reading.options)
            if is_added:
                both = np.concatenate([distinct, distinct[::-1]], axis=1)
                distinct = _distinct(both, sizes[1])
        findings.append(Finding(f"one-way edges{where}", one_way, action))
    return findings, distinct


def _distinct(ends: np.ndarray, bound: int) -> np.ndarray:
    """Each edge once."""
    return np.stack(np.divmod(np.unique(ends[0] * bound + ends[1]), bound))


def _labels(labels: np.ndarray, read: UserGraph) -> list[Finding]:
    labelled = labels[labels != UNLABELLED]
    counts = np.bincount(labelled)
    names = replace(read.predicted, width=len(counts)).words
    by_size = np.argsort(-counts, kind="stable")[:_SHOWN_CLASSES]
    shown = {names[at]: int(counts[at]) for at in sorted(by_size)}
    which = "each class"
    if len(counts) > len(shown):
        which = f"the {len(shown)} largest classes"
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
        Finding(f"nodes of {which}", shown),
    ]


def _split(name: str, store: Any, predicted: Target) -> list[Finding]:
    masks = given_masks(name, store)
    if not masks:
        made = f"made: {DEFAULT_SPLIT} with seed {DEFAULT_SPLIT_SEED}, by class"
        return [Finding("split", "none given", made)]
    sizes = {mask.removesuffix("_mask"): value.sum(0) for mask, value in masks.items()}
    if masks[MASKS[0]].dim() > 1:
        splits = each_split(masks)
        for number, split in enumerate(splits):
            check_masks(f"{name}, split {number}", store.y, split)
        action = "used as given: the first, or the one that a number or a seed chooses"
        findings = [Finding("splits", len(splits), action)]
        for part, size in sizes.items():
            ends = {"fewest": int(size.min()), "most": int(size.max())}
            findings.append(Finding(f"{part} nodes per split", ends))
    else:
        check_masks(name, store.y, masks)
        counts = {part: int(size) for part, size in sizes.items()}
        findings = [Finding("split", counts, "used as given")]
    labels = store.y.numpy()
    kept = classes_in_splits(labels, masks)
    lost = np.setdiff1d(labels[labels != UNLABELLED], kept)
    if len(kept) and len(lost):
        words = replace(predicted, width=int(labels.max()) + 1).words
        names = [words[at] for at in lost]
        action = (
            f"left out, so that {len(kept)} of {len(kept) + len(lost)} classes are "
            f"used; --split {DEFAULT_SPLIT} makes a split with all classes"
        )
        findings.append(Finding("classes in no split", listed(names), action))
    return findings


def _features(store: Any, names: Sequence[str] | None) -> list[Finding]:
    """What the features of one node type are; `names` is None where they have none."""
    where = "" if store._key is None else f" of {store._key}"
    x = store.get("x")
    if not isinstance(x, Tensor):
        action = "training needs some; --make-features degree makes them"
        if where:
            action = "each node gets a learned vector"
        return [Finding(f"features{where}", "none", action)]
    values = x.values() if x.layout == torch.sparse_csr else x
    finite = values[torch.isfinite(values)]
    zeros = x.numel() - int(torch.count_nonzero(values))
    findings = [
        Finding(f"features{where}", x.shape[1]),
        *_kinds_of_features(x, names, where),
        Finding(
            f"values that are not finite{where}",
            values.numel() - finite.numel(),
            "compare refuses them: fill or drop them",
        ),
    ]
    if finite.numel():
        low, high = float(finite.min()), float(finite.max())
        if x.layout == torch.sparse_csr and zeros:
            low, high = min(low, 0.0), max(high, 0.0)
        # Six digits: what float32 holds.
        ends = {"least": float(f"{low:.6g}"), "most": float(f"{high:.6g}")}
        share = round(zeros / x.numel(), 4)
        findings.append(Finding(f"range of features{where}", ends))
        findings.append(Finding(f"share of zeros{where}", share, "kept"))
    return findings


def _kinds_of_features(
    x: Tensor, names: Sequence[str] | None, where: str
) -> list[Finding]:
    """How many features are numbers, 0 or 1, or constant, and their names."""
    if not x.shape[1] or not len(x):
        return []
    kinds = [kind for block in column_blocks(x) for kind in column_kinds(block)]
    findings = []
    if names is not None:
        kinds = [
            "one-hot" if "=" in name and kind != "number" else kind
            for name, kind in zip(names, kinds, strict=True)
        ]
        words = [f"{name} ({kind})" for name, kind in zip(names, kinds, strict=True)]
        shown = listed(words, SHOWN_FEATURES)
        findings.append(Finding(f"names of features{where}", shown))
    return [*findings, Finding(f"kinds of features{where}", dict(Counter(kinds)))]


def _homophily(
    data: Data | HeteroData,
    kind: str | None,
    labels: np.ndarray,
    edges: Mapping[tuple[str, str, str] | None, np.ndarray],
) -> list[Finding]:
    inside = [e for t, e in edges.items() if t is None or t[0] == t[2] == kind]
    ends = np.concatenate([np.empty((2, 0), np.int64), *inside], axis=1)
    measured = homophily(ends, labels)
    one_way = reverse_share(ends, len(labels)) < 1.0
    notes = {"adjusted homophily": "by in-degrees alone: edges lead one way"}
    measures = {
        "edge homophily": measured.edge,
        "node homophily": measured.node,
        "adjusted homophily": measured.adjusted,
    }
    estimate = None
    if isinstance(data, HeteroData) and kind is not None:
        estimate = estimate_h2_index(data, kind)
        measures["H2Index"] = None if estimate is None else estimate[0]
    findings = [
        Finding(
            name,
            None if value is None else round(value, 4),
            notes.get(name, "") if one_way else "",
        )
        for name, value in measures.items()
    ]
    if estimate is not None and estimate[1]:
        findings.append(Finding("standard error of H2Index", round(estimate[1], 6)))
    return findings
