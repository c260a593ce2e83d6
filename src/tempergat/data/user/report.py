"""Reports what a user graph holds and what loading does with it."""

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError, listed
from tempergat.data.dataset import UNLABELLED, Dataset, describe_reading, node_counts
from tempergat.data.features import column_blocks, column_kinds
from tempergat.data.homophily_measures import estimate_h2_index, homophily
from tempergat.data.loading import short_name
from tempergat.data.splits import DEFAULT_SPLIT, DEFAULT_SPLIT_SEED
from tempergat.data.user.edges import decide_direction, reverse_share
from tempergat.data.user.labels import NoLabels
from tempergat.data.user.open_graph import read_user_graph, with_splits
from tempergat.data.user.options import (
    Problems,
    Question,
    ReadOptions,
    as_command,
    settle,
)
from tempergat.data.user.splits import check_masks, given_masks, numbered_splits
from tempergat.data.user.user_graph import UserGraph
from tempergat.data.user.validate import check_features, classes_in_splits, edge_stores

_SHOWN_CLASSES = 20
_SHOWN_FEATURES = 20
# How often options are changed to read on behind a problem.
_MOST_TRIES = 20


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


def check_graph(
    path: Path,
    options: ReadOptions | None = None,
    scale: bool = True,
    refuse: Callable[[Dataset], None] | None = None,
) -> list[Finding]:
    """Reports what a user graph holds, and how it is read.

    Args:
        path: A folder of tables, an `.npz` or a `.pt`.
        options: How it is read; the defaults when left out.
        scale: Whether columns of tables are scaled for training.
        refuse: Raises for a graph that cannot be trained on.

    Returns:
        The findings. If the graph cannot be used, one is about `compare` and says why.
        What is wrong is collected as far as options can settle it; the last finding
        is then a command with all of these options.

    Raises:
        UserError: The files cannot be read, or contradict themselves.
    """
    used = given = options or ReadOptions()
    problems: list[UserError] = []
    findings: list[Finding] = []
    for _ in range(_MOST_TRIES):
        errors, reported = _report(path, used, scale, refuse)
        findings = findings or reported
        problems += [error for error in errors if str(error) not in map(str, problems)]
        settled = settle(used, errors)
        if settled == used:
            break
        used = settled
    if not problems:
        return findings
    if not findings and len(problems) == 1:
        raise problems[0]
    if len(problems) > 1 or used != given:
        findings += [Finding("problem", str(problem)) for problem in problems]
    findings.append(Finding("compare", "refuses the graph", str(problems[0])))
    if not errors:
        command = f"tempergat compare {shlex.quote(str(path))} {as_command(used)}"
        findings.append(Finding("command", command))
    return findings


def _report(
    path: Path,
    options: ReadOptions,
    scale: bool,
    refuse: Callable[[Dataset], None] | None,
) -> tuple[list[UserError], list[Finding]]:
    """What is wrong with a graph that is read with these options, and the findings.

    There are no findings where the graph cannot be read at all.
    """
    problems, labelled = Problems(collect=True), True
    findings: list[Finding] = []
    unlabelled: UserError | None = None
    try:
        try:
            read = read_user_graph(path, options, problems)
        except NoLabels as error:
            problems, labelled, unlabelled = Problems(collect=True), False, error
            read = read_user_graph(path, options, problems, labelled=False)
        if read.mapped_hashes:
            findings = _findings_on_arrays(path, read, labelled)
        else:
            findings = _findings(path, read, options, labelled)
        if not problems.errors:
            graph = with_splits(path, read, options, labelled, use_masks=True)
            unsplit = replace(graph.unsplit, name=short_name(path))
            dataset = replace(graph, unsplit=unsplit).choose()
            if labelled and refuse is not None:
                refuse(dataset)
            return [], findings + _how_read(dataset, scale)
    except UserError as error:
        problems.errors.append(error)
    questions = [error for error in problems.errors if isinstance(error, Question)]
    words = [name for each in questions for name in each.options.get("one_hot", ())]
    if unlabelled is not None and words:
        # Of several columns of words the last is most often the label.
        return [Question(str(unlabelled), label=words[-1])], []
    return problems.errors, findings


def _findings(
    path: Path, read: UserGraph, options: ReadOptions, labelled: bool
) -> list[Finding]:
    """What a graph holds before its edges are merged and reversed."""
    data, store = read.data, read.store
    check_features(str(path), data)
    findings = _nodes_and_edges(path, data, read, options)
    classes = Finding("classes", int(store.y.max()) + 1) if labelled else _UNLABELLED
    findings.insert(1, classes)
    if read.target is not None:
        findings.insert(1, Finding("classified node type", read.target))
    if labelled:
        findings += _labels(store.y.numpy(), read)
        findings += _split(path, store, read.class_names)
    for node_store in data.node_stores:
        names = read.feature_names if node_store is store or data is store else None
        findings += _features(node_store, names)
    if labelled:
        findings += _homophily(data, read.target, store.y.numpy())
    return findings


def _findings_on_arrays(path: Path, read: UserGraph, labelled: bool) -> list[Finding]:
    """What a folder of arrays holds, as far as it costs no memory."""
    data = read.data
    findings = [
        Finding("nodes", int(data.num_nodes)),
        Finding("edges", int(data.num_edges), "followed as they are listed"),
        Finding("features", int(data.x.size(1))),
        *(Finding("not read", note) for note in read.notes if "not read" in note),
    ]
    if not labelled:
        return [*findings, _UNLABELLED]
    findings.append(Finding("classes", int(data.y.max()) + 1))
    findings += _labels(data.y.numpy(), read)
    return findings + _split(path, data, read.class_names)


def _how_read(dataset: Dataset, scale: bool) -> list[Finding]:
    """What the files were taken for, scaled columns, and notes on reading the graph."""
    findings = [
        Finding(f"read: {subject.replace('_', ' ')}", what)
        for subject, what in describe_reading(dataset).items()
        if subject != "scaled"
    ]
    columns = dataset.scaled_columns if scale else {}
    scaled = [
        f"{name} (mean {mean:.6g}, deviation {deviation:.6g})"
        for name, (mean, deviation) in columns.items()
    ]
    if scaled:
        action = (
            "centred and divided by their deviation for training; not with --no-scale"
        )
        shown = listed(scaled, _SHOWN_FEATURES)
        findings.append(Finding("scaled columns", shown, action))
    return findings + [Finding("note", note) for note in dataset.notes]


def _nodes_and_edges(
    path: Path, data: Data | HeteroData, read: UserGraph, options: ReadOptions
) -> list[Finding]:
    stores = edge_stores(str(path), data)
    counts = node_counts(data)
    is_typed = isinstance(data, HeteroData)
    findings = [Finding("nodes", counts if is_typed else counts[""])]
    is_isolated = {name: np.ones(count, bool) for name, count in counts.items()}
    for types, store, sizes in stores:
        ends = store.edge_index.numpy()
        findings += _edges(types, ends, sizes, read, options)
        source, target = ("", "") if types is None else (types[0], types[2])
        if source == target:
            ends = ends[:, ends[0] != ends[1]]
        is_isolated[source][ends[0]] = False
        is_isolated[target][ends[1]] = False
    isolated = {name: int(mask.sum()) for name, mask in is_isolated.items()}
    action = "kept; with a self-loop each attends to its own features"
    value = isolated if is_typed else isolated[""]
    return [*findings, Finding("isolated nodes", value, action)]


def _edges(
    types: tuple[str, str, str] | None,
    ends: np.ndarray,
    sizes: tuple[int, int],
    read: UserGraph,
    options: ReadOptions,
) -> list[Finding]:
    where = "" if types is None else f" {'-'.join(types)}"
    distinct = np.stack(np.divmod(np.unique(ends[0] * sizes[1] + ends[1]), sizes[1]))
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
        action = decide_direction(share, read, options)[1] if types is None else "kept"
        findings.append(Finding(f"one-way edges{where}", one_way, action))
    return findings


def _labels(labels: np.ndarray, read: UserGraph) -> list[Finding]:
    labelled = labels[labels != UNLABELLED]
    counts = np.bincount(labelled)
    names = read.class_names or [str(number) for number in range(len(counts))]
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


def _split(path: Path, store: Any, class_names: Sequence[str] | None) -> list[Finding]:
    masks = given_masks(str(path), store)
    if not masks:
        made = f"made: {DEFAULT_SPLIT} with seed {DEFAULT_SPLIT_SEED}, by class"
        return [Finding("split", "none given", made)]
    sizes = {name.removesuffix("_mask"): mask.sum(0) for name, mask in masks.items()}
    splits = numbered_splits(masks)
    if splits:
        for number, split in enumerate(splits):
            check_masks(f"{path}, split {number}", store.y, split)
        action = "used as given: the first, or the one that a number or a seed chooses"
        findings = [Finding("splits", len(splits), action)]
        for part, size in sizes.items():
            ends = {"fewest": int(size.min()), "most": int(size.max())}
            findings.append(Finding(f"{part} nodes per split", ends))
    else:
        check_masks(str(path), store.y, masks)
        counts = {part: int(size) for part, size in sizes.items()}
        findings = [Finding("split", counts, "used as given")]
    labels = store.y.numpy()
    kept = classes_in_splits(labels, masks)
    lost = np.setdiff1d(labels[labels != UNLABELLED], kept)
    if len(kept) and len(lost):
        names = [str(at) if class_names is None else class_names[at] for at in lost]
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
        shown = listed(words, _SHOWN_FEATURES)
        findings.append(Finding(f"names of features{where}", shown))
    return [*findings, Finding(f"kinds of features{where}", dict(Counter(kinds)))]


def _homophily(
    data: Data | HeteroData, kind: str | None, labels: np.ndarray
) -> list[Finding]:
    if isinstance(data, HeteroData):
        inside = [data[t].edge_index for t in data.edge_types if t[0] == t[2] == kind]
        ends = torch.cat(inside, dim=1).numpy() if inside else np.empty((2, 0), int)
    else:
        ends = data.edge_index.numpy()
    measured = homophily(ends[:, ends[0] != ends[1]], labels)
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
        Finding(name, None if value is None else round(value, 4))
        for name, value in measures.items()
    ]
    if estimate is not None and estimate[1]:
        findings.append(Finding("standard error of H2Index", round(estimate[1], 6)))
    return findings
