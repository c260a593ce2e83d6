"""Ordinary files, each with what the user meant: read so, noted, or a question.

A form is the same graph of twelve nodes written in another way. `read` forms must give
the graph that was meant, and no others are read without a word about them.
"""

import gzip
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from tempergat import ReadOptions, UserError
from tempergat.data import Dataset, as_dataset

COUNT = 12
ROWS = range(COUNT)
CLASSES = [("cat", "dog", "owl")[row % 3] for row in ROWS]
HEIGHT = [0.5 * row - 1 for row in ROWS]
SIZE = [3 * row * row for row in ROWS]
EDGES = [(row, (row + 1) % COUNT) for row in ROWS] + [(0, 5), (3, 9)]
# Ids that are no row numbers, and a permutation of the row numbers.
NAMES = [f"n{row}" for row in ROWS]
SHUFFLED = [(5 * row + 3) % COUNT for row in ROWS]
PARTS = [("train", "train", "val", "test")[row // 3] for row in ROWS]


@dataclass
class Form:
    """A graph in one form, and what must come of it.

    Attributes:
        nodes: The columns of the nodes, by name.
        said: What an error or a note says; "" where the graph is read as meant.
        edges: The columns of the edges; by default the edges between `ids`.
        ids: What edges call the nodes.
        labels: The class of each node, as it should be read; None for unlabelled.
        features: The features as they should be read.
        options: How the graph is read.
        has_split: Whether `PARTS` is given with the graph.
        write: Turns a table, given as rows of texts, into the bytes of a file.
        files: Further files.
    """

    nodes: dict[str, list[Any]]
    said: str = ""
    edges: dict[str, list[Any]] | None = None
    ids: list[Any] = field(default_factory=lambda: list(ROWS))
    labels: list[Any] = field(default_factory=lambda: list(CLASSES))
    features: dict[str, list[float]] = field(default_factory=lambda: {"height": HEIGHT})
    options: dict[str, Any] = field(default_factory=dict)
    has_split: bool = False
    write: Callable[[list[list[str]]], bytes] = lambda rows: csv_bytes(rows)
    suffix: str = ".csv"
    files: dict[str, str] = field(default_factory=dict)


def csv_bytes(rows: list[list[str]], mark: str = ",", end: str = "\n") -> bytes:
    return "".join(mark.join(row) + end for row in rows).encode()


def rows_of(columns: dict[str, list[Any]]) -> list[list[str]]:
    return [
        list(columns),
        *(list(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]


FORMS: dict[str, Form] = {}


def add(name: str, nodes: dict[str, list[Any]], said: str = "", **others: Any) -> None:
    assert name not in FORMS
    FORMS[name] = Form(nodes, said, **others)


PLAIN = {"id": NAMES, "height": HEIGHT, "label": CLASSES}


def plain(name: str, said: str = "", **others: Any) -> None:
    add(name, PLAIN, said, **{"ids": NAMES, **others})


# Marks, quotes, line ends and encodings.
plain("commas")
for name, mark in {"tabs": "\t", "bars": "|", "semicolons": ";"}.items():
    plain(name, write=lambda rows, mark=mark: csv_bytes(rows, mark))
plain("tsv", suffix=".tsv", write=lambda rows: csv_bytes(rows, "\t"))
plain("gz", suffix=".csv.gz", write=lambda rows: gzip.compress(csv_bytes(rows)))
plain(
    "tsv.gz",
    suffix=".tsv.gz",
    write=lambda rows: gzip.compress(csv_bytes(rows, "\t")),
)
plain("Windows", write=lambda rows: csv_bytes(rows, end="\r\n"))
plain("blank lines", write=lambda rows: csv_bytes(rows, end="\n\n"))
plain("no last end", write=lambda rows: csv_bytes(rows).rstrip())
plain("byte order mark", write=lambda rows: b"\xef\xbb\xbf" + csv_bytes(rows))
plain("utf-16", write=lambda rows: csv_bytes(rows).decode().encode("utf-16"))
plain("spaces", write=lambda rows: csv_bytes(rows, " , "))
plain(
    "quotes",
    write=lambda rows: csv_bytes([[f'"{v}"' for v in row] for row in rows]),
)
plain(
    "decimal commas",
    write=lambda rows: csv_bytes(
        [[value.replace(".", ",") for value in row] for row in rows], ";"
    ),
)
plain(
    "latin-1",
    "not CSV in UTF-8",
    write=lambda rows: csv_bytes(rows).replace(b"cat", b"\xe9"),
)
plain(
    "a row too short",
    "values, but the header names",
    write=lambda rows: csv_bytes([*rows[:-1], rows[-1][:-1]]),
)
plain(
    "no header of edges",
    "first line must name the columns",
    edges={"n0": NAMES, "n1": NAMES[::-1]},
)

# Names of the columns that are not features.
for name in ("id", "ID", "node_id", "Node ID", "nodeId", "idx", "index", "node"):
    add(f"id: {name}", {name: NAMES, "height": HEIGHT, "label": CLASSES}, ids=NAMES)
OTHER_IDS = "user_id paper_id uid key account gene_id nr code vertex name entity_id"
for name in OTHER_IDS.split():
    nodes = {name: NAMES, "height": HEIGHT, "label": CLASSES}
    add(f"words in {name}", nodes, ids=NAMES)
    nodes = {**nodes, name: SHUFFLED}
    add(f"rows in {name}", nodes, "or by row number from 0", ids=SHUFFLED)
    hundreds = [100 + row for row in SHUFFLED]
    add(f"numbers in {name}", {**nodes, name: hundreds}, ids=hundreds)
add("no id", {"height": HEIGHT, "label": CLASSES})
counted = [row + 1 for row in ROWS]
add("no id, from 1", {"height": HEIGHT, "label": CLASSES}, "from 1", ids=counted)
for name in ("label", "Label", "labels", "y", "Y", "target", "class", "class_label"):
    add(f"label: {name}", {"id": NAMES, "height": HEIGHT, name: CLASSES}, ids=NAMES)
add(
    "label: kind",
    {"id": NAMES, "height": HEIGHT, "kind": CLASSES},
    "no column label, only .*--label",
    ids=NAMES,
)
add(
    "label by option",
    {"id": NAMES, "height": HEIGHT, "kind": CLASSES},
    ids=NAMES,
    options={"label": "kind"},
)
add("two labels", {**PLAIN, "y": SIZE}, "has the name of a label", ids=NAMES)
ENDS = "source target,src dst,from to,u v,Source Target,source_id target_id"
ENDS += ",from_node to_node,id1 id2,node1 node2,head tail,start end,SRC DST"
for pair in ENDS.split(","):
    first, second = pair.split()
    ends = {first: [NAMES[a] for a, _ in EDGES], second: [NAMES[b] for _, b in EDGES]}
    plain(f"ends: {pair}", edges=ends)
ends = {"buyer": [NAMES[a] for a, _ in EDGES], "seller": [NAMES[b] for _, b in EDGES]}
plain("ends: buyer seller", "has no columns source and target", edges=ends)

# Coordinates.
POINTS = {"id": NAMES, "x": HEIGHT, "y": SIZE}
WITH_POINTS = {"x": HEIGHT, "y": SIZE}
add("x, y, category", {**POINTS, "category": CLASSES}, "y may be the label", ids=NAMES)
add(
    "x, y, label",
    {**POINTS, "label": CLASSES},
    ids=NAMES,
    features=WITH_POINTS,
)
add(
    "x, y, category by option",
    {**POINTS, "category": CLASSES},
    ids=NAMES,
    features=WITH_POINTS,
    options={"label": "category"},
)
add("x and a label y", {"x": HEIGHT, "y": CLASSES}, features={"x": HEIGHT})


# Numbers.
def numbers(
    name: str, texts: list[Any], said: str = "", mark: str = ",", **others: Any
) -> None:
    add(
        f"numbers: {name}",
        {"height": texts, "label": CLASSES},
        said,
        write=lambda rows: csv_bytes(rows, mark),
        **others,
    )


def meant(values: list[Any]) -> dict[str, Any]:
    return {"features": {"height": [float(value) for value in values]}}


THOUSANDS = [1000 * (row + 1) for row in ROWS]
numbers("plain", HEIGHT)
numbers("signs", [f"{value:+}" for value in HEIGHT])
numbers("exponents", [f"{value:e}" for value in HEIGHT])
numbers("spaces", [f"  {value} " for value in HEIGHT])
numbers("true, false", ["true", "False"] * 6, **meant([1, 0] * 6))
numbers("commas of thousands", [f"{v:,}" for v in THOUSANDS], "may be 1000 or", ";")
numbers(
    "some commas of thousands",
    [f"{v:,}" if v > 5000 else 500 for v in THOUSANDS],
    "may be 6000 or",
    ";",
)
numbers(
    "points of thousands", [f"{v // 1000}.000" for v in THOUSANDS], "may be 1000", ";"
)
numbers("decimal commas", [f"{v:.2f}".replace(".", ",") for v in HEIGHT], "", ";")
numbers("three decimals", [f"{v:.3f}" for v in HEIGHT])
numbers("three decimals and semicolons", [f"{v:.3f}" for v in HEIGHT], "", ";")
numbers("three decimal commas", [f"{v:.3f}".replace(".", ",") for v in HEIGHT], "", ";")
numbers(
    "thousands in a comma table", [f'"{v:,}"' for v in THOUSANDS], "is not a number"
)
numbers("underscores", [f"{row + 10}_0" for row in ROWS], "is not a number")
numbers("seconds", [1_700_000_000 + row for row in ROWS], "lost in 32 bits")
numbers("years", [1990 + row for row in ROWS], **meant([1990 + row for row in ROWS]))
numbers("too large", [f"1e{300 + row}" for row in ROWS], "not a finite number")
numbers("dollars", [f"${v}" for v in SIZE], "is not a number")
numbers("percent", [f"{v}%" for v in SIZE], "is not a number")
numbers("codes", [f"0{1000 + row % 4}" for row in ROWS], "codes like 01000, which are")
numbers("fractions", [f"{v}/2" for v in SIZE], "is not a number")
numbers("hexadecimal", [hex(v) for v in SIZE], "is not a number")
numbers("thin spaces", [f"{v // 1000} 000" for v in THOUSANDS], "is not a number")
numbers("dates", [f"2020-01-{row + 1:02}" for row in ROWS], "is not a number")
numbers("times", [f"{row}:30" for row in ROWS], "is not a number")
numbers("words", ["low", "high"] * 6, "--one-hot")
numbers("sentences", [f"text {row}" for row in ROWS], "differs in every row")
for word in ("", "NA", "nan", "NULL", "None", "?", "-", "#N/A"):
    texts = [word if row == 4 else row for row in ROWS]
    numbers(f"missing as {word or 'nothing'}", texts, "a missing value")
for word in ("inf", "-Infinity"):
    texts = [word if row == 4 else row for row in ROWS]
    numbers(word, texts, "not a finite number")


# Labels.
def labels(
    name: str, texts: list[Any], said: str = "", meant: Any = None, **others: Any
) -> None:
    nodes = {"height": HEIGHT, "label": texts}
    meant = texts if meant is None else meant
    add(f"labels: {name}", nodes, said, labels=list(map(named, meant)), **others)


def named(label: Any) -> str | None:
    return None if label is None else str(label)


def cycle(*values: Any) -> list[Any]:
    return [values[row % len(values)] for row in ROWS]


labels("words", CLASSES)
labels("numbers", cycle(0, 1, 2))
labels("numbers from 1", cycle(1, 2, 3))
labels("years", cycle(1999, 2005, 2010))
labels("decimals", cycle("0.0", "1.0", "2.0"), meant=cycle(0, 1, 2))
labels("booleans", cycle("True", "False"))
labels("yes and no", cycle("yes", "no"))
labels("codes", cycle("0111", "111"))
labels("codes of one length", cycle("01", "02", "10"))
labels("spaces", cycle("cat ", " cat", "dog"), meant=cycle("cat", "cat", "dog"))
labels("cases", cycle("Cat", "cat", "dog"), "differ only in case", CLASSES)
labels("fractions", cycle(0.5, 1.5), "continuous targets")
labels("numbers and words", cycle(1, "dog"), "use numbers or words")
labels("names of places", cycle("New York", "New Jersey", "Ohio"))
labels("formulas", cycle("=a", "+b", "@c"))
for name, texts in {
    "semicolons": cycle("a;b", "a", "b"),
    "bars": cycle("a|b", "a", "b"),
    "lists": cycle("['a' 'b']", "['a']"),
    "brackets": cycle("[1]", "[2]"),
    "sets": cycle("{a}", "{b}"),
    "tuples": cycle("(a)", "(b)"),
}.items():
    labels(f"several by {name}", texts, "several labels per node")
labels("several by commas", cycle('"a,b"', "a", "b"), "several labels per node")
labels("several by spaces", cycle("a b", "a", "b c", "c"), "several labels per node")
labels("some by commas", cycle('"a,b"', "a", '"b,c"'), "several labels per node")
labels("some by spaces", cycle("a b", "a", "b c"), "several labels per node")
labels("words in common", cycle("low risk", "high risk", "very high risk"))
labels("several by slashes", cycle("a/b", "a", "b"), "several labels per node")
labels("empty", cycle("cat", "dog", ""), meant=cycle("cat", "dog", None))
labels("minus one", cycle(-1, 0, 1), "-1 is the class of 4 nodes")
labels(
    "minus one by option",
    cycle(-1, 0, 1),
    meant=cycle(None, 0, 1),
    options={"missing": ("-1",)},
)
for word in ("None", "NA", "?", "-", "null"):
    labels(f"a class {word}", cycle("mild", "bad", word), "may be a class")
    texts = [word if row == 7 else CLASSES[row] for row in ROWS]
    labels(f"one {word}", texts, meant=[None if t == word else t for t in texts])


# Words that stand for a gap, or are one of the words of a feature.
SIGNS = {"sign": cycle("+", "-", "+"), "label": CLASSES}
ENCODED = {"sign=+": cycle(1, 0, 1), "sign=-": cycle(0, 1, 0)}
add(
    "words: plus and minus",
    SIGNS,
    "- is the sign of 4 nodes, and . of 8, so it may be a word",
    features=ENCODED,
    options={"one_hot": ("sign",), "fill": "most-frequent"},
)
add(
    "words: plus and minus by option",
    SIGNS,
    features=ENCODED,
    options={"one_hot": ("sign",), "missing": ()},
)
add(
    "words: gaps and a rare word",
    {"region": [*"NS?NS?NSRNSN"], "label": CLASSES},
    "--fill most-frequent filled 2 gaps in region",
    options={"one_hot": ("region",), "fill": "most-frequent"},
)


def many(name: str, texts: list[Any], said: str = "", **options: Any) -> None:
    """A form of many nodes, whose labels are hardly classes."""
    rows = range(len(texts))
    features = {"height": [0.5 * row for row in rows]}
    nodes = {**features, "label": texts}
    labels = [str(text) for text in texts]
    meant = {"labels": labels, "features": features, "options": options}
    add(f"labels: {name}", nodes, said, **meant)


COUNTS = [row * row % 211 for row in range(600)]
many("counts", COUNTS, "like a count or an age.*, or insist .* with --many-classes")
many("counts that are classes", COUNTS, many_classes=True)
many("ages", [20 + 7 * row % 41 for row in range(60)], "like a count or an age")
many("days", [f"2020-01-{row % 28 + 1:02}" for row in range(60)], "of 28 classes")
many("names", [f"person {row}" for row in range(80)], "has a label of its own")


# Splits.
def split(name: str, columns: dict[str, list[Any]], said: str = "") -> None:
    add(f"split: {name}", {**PLAIN, **columns}, said, ids=NAMES, has_split=True)


for name in ("split", "Split", "subset", "partition", "fold"):
    split(name, {name: PARTS})
split("abbreviated", {"split": [part[:2] for part in PARTS]}, "write train, val, test")
split("dev", {"split": ["dev" if part == "val" else part for part in PARTS]})
split("Training", {"split": [f"{part.title()}ing" for part in PARTS]}, "Valing")
SPELLED = (
    "train_mask val_mask test_mask,is_train is_val is_test,in_train in_val in_test"
)
SPELLED += ",train val test,training validation testing,tr_mask va_mask te_mask"
SPELLED += ",mask_train mask_val mask_test,isTrain isValid isTest,tr va te"
SPELLED += ",train_set val_set test_set,used_for_train used_for_val used_for_test"
for spelled in SPELLED.split(","):
    masks = {
        name: [int(part == word) for part in PARTS]
        for name, word in zip(spelled.split(), ("train", "val", "test"), strict=True)
    }
    split(spelled, masks)
split("train and test", {"train": cycle(0, 1), "test": cycle(1, 0)}, "lacks val")
split(
    "two splits", {"split": PARTS, "fold": PARTS}, "each may be the split|has the name"
)


# Edges.
def edges(name: str, pairs: list[tuple[Any, Any]], said: str = "", **more: Any) -> None:
    ends = {"source": [a for a, _ in pairs], "target": [b for _, b in pairs], **more}
    plain(f"edges: {name}", said, edges=ends)


PAIRS = [(NAMES[a], NAMES[b]) for a, b in EDGES]
edges("both ways", PAIRS + [(b, a) for a, b in PAIRS])
edges("once", PAIRS, "read as an undirected graph")
edges("repeated", PAIRS + PAIRS[:3], "repeat an earlier edge")
edges("some both ways", PAIRS + [(b, a) for a, b in PAIRS[:5]], "not clear whether")
edges("an unknown node", [*PAIRS, ("n0", "n99")], "has no such node")
edges("a gap", [*PAIRS, ("n0", "")], "has no such node")
edges("weights", PAIRS, "edge column weight is not used", weight=[1.5] * len(PAIRS))

# Files beside the tables.
plain(
    "three files of ids",
    has_split=True,
    files={
        f"{part}.csv": "id\n"
        + "".join(f"{n}\n" for n, p in zip(NAMES, PARTS, strict=True) if p == part)
        for part in ("train", "val", "test")
    },
)
SPLIT = "id,split\n" + "".join(f"{n},{p}\n" for n, p in zip(NAMES, PARTS, strict=True))
plain("split.csv", files={"split.csv": SPLIT}, has_split=True)
plain("train.csv alone", "for val", files={"train.csv": "id\nn0\n"})
plain("splits.csv", files={"splits.csv": SPLIT}, has_split=True)
plain("a picture beside it", files={"graph.png": "?"})
plain("a note beside it", files={"README.md": "hello"})


def graph_of(form: Form, folder: Path) -> Path:
    folder.mkdir()
    ends = form.edges
    if ends is None:
        # Both ways, so that nothing is to be said about their direction.
        pairs = [*EDGES, *((b, a) for a, b in EDGES)]
        ends = {
            "source": [form.ids[a] for a, _ in pairs],
            "target": [form.ids[b] for _, b in pairs],
        }
    for name, columns in (("nodes", form.nodes), ("edges", ends)):
        path = folder / f"{name}{form.suffix}"
        path.write_bytes(form.write(rows_of(columns)))
    for name, text in form.files.items():
        (folder / name).write_text(text)
    return folder


def said_about(form: Form, folder: Path) -> tuple[Dataset | None, str]:
    """The graph, unless it is refused, and all that is said about it."""
    try:
        read = as_dataset(graph_of(form, folder), options=ReadOptions(**form.options))
    except UserError as error:
        return None, str(error)
    return read, "\n".join(read.notes)


def labels_of(read: Dataset) -> Iterator[str | None]:
    names = read.predicted.names or [
        str(number) for number in range(read.predicted.width)
    ]
    for label in read.store.y.tolist():
        yield None if label < 0 else names[label]


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_as_meant_or_something_is_said(
    name: str, tmp_path: Path
) -> None:
    form = FORMS[name]
    read, said = said_about(form, tmp_path / "g")
    if form.said:
        assert re.search(form.said, said), said
        return
    assert read is not None, said
    one_way = "have a reverse edge, so it is read as an undirected graph"
    assert all(one_way in note for note in read.notes), said
    assert list(labels_of(read)) == form.labels
    assert read.feature_names == tuple(form.features)
    wanted = np.array(list(form.features.values()), dtype=np.float32).T
    np.testing.assert_array_equal(read.data.x.numpy(), wanted)
    ends = {*map(tuple, read.data.edge_index.T.tolist())}
    assert ends == {*EDGES, *((b, a) for a, b in EDGES)}
    assert read.node_ids in (None, tuple(map(str, form.ids)))
    assert read.is_split_made != form.has_split
    for part in ("train", "val", "test") if form.has_split else ():
        mask = read.data[f"{part}_mask"].tolist()
        assert mask == [other == part for other in PARTS]


def arrays(**others: Any) -> Data:
    return Data(
        x=torch.tensor([HEIGHT, SIZE]).T,
        y=torch.tensor(cycle(0, 1, 2)),
        edge_index=torch.tensor(EDGES + [(b, a) for a, b in EDGES]).T,
        **others,
    )


THERE = ("author", "writes", "paper")
BACK = ("paper", "written", "author")
CITES, CITED = ("paper", "cites", "paper"), ("paper", "cited", "paper")
NODES = torch.arange(4)


def typed(*kinds: tuple[str, str, str], **of_edges: Any) -> HeteroData:
    data = HeteroData()
    data["paper"].x, data["paper"].y = torch.randn(4, 2), torch.tensor([0, 1, 0, 1])
    data["author"].x = torch.randn(4, 2)
    for kind in kinds:
        shift = {CITES: 1, CITED: -1}.get(kind, 0)
        data[kind].edge_index = torch.stack([NODES, (NODES + shift) % 4])
        for name, value in of_edges.items():
            data[kind][name] = value
    return data


def with_masks(*test: int) -> Data:
    parts = {"val": [0, 1, 2], "test": list(test)}
    parts["train"] = [row for row in ROWS if row not in parts["val"] + parts["test"]]
    masks = {f"{part}_mask": torch.zeros(COUNT, dtype=torch.bool) for part in parts}
    for part, nodes in parts.items():
        masks[f"{part}_mask"][nodes] = True
    return arrays(**masks)


def with_label_as_features() -> Data:
    classes = torch.arange(60) % 3
    x = torch.cat([torch.randn(60, 2), torch.eye(3)[classes]], dim=1)
    return Data(x=x, y=classes, edge_index=torch.arange(60).repeat(2, 1))


OBJECTS: dict[str, tuple[Data | HeteroData, str]] = {
    "plain": (arrays(), ""),
    "seconds": (
        arrays(stamp=0).update({"x": 1_700_000_000 + torch.arange(24).view(12, 2)}),
        "lost in 32 bits",
    ),
    "types": (typed(THERE, BACK), ""),
    "edge features of types": (
        typed(THERE, BACK, edge_attr=torch.ones(4, 1)),
        "edge_attr of author__writes__paper, .* not used",
    ),
    "edge weights of types": (
        typed(THERE, BACK, edge_weight=torch.ones(4)),
        "edge_weight of author__writes__paper, .* not used",
    ),
    "one way to the classified type": (
        typed(THERE),
        "^graph: no edges lead back along author__writes__paper; add the reverse",
    ),
    "one way within a type": (
        typed(THERE, BACK, CITES),
        "^graph: no edges lead back along paper__cites__paper; add the reverse",
    ),
    "both ways within a type": (typed(THERE, BACK, CITES, CITED), ""),
    "one way from it": (typed(BACK), "no edge leads to paper, so no method uses"),
    "classes in all parts": (with_masks(3, 4, 5), ""),
    "a class without training nodes": (
        with_masks(5, 8, 11),
        "no training node is of class 2, so",
    ),
    "a label once more as 0-1 features": (
        with_label_as_features(),
        "features number 2, number 3, number 4 together tell the class",
    ),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_used_as_meant_or_something_is_said(name: str) -> None:
    graph, words = OBJECTS[name]
    try:
        notes = "\n".join(as_dataset(graph).notes)
    except UserError as error:
        notes = str(error)
    if words:
        assert re.search(words, notes), notes
    else:
        assert notes == ""


def test_types_that_lead_one_way_on_purpose_are_not_noted() -> None:
    assert as_dataset(typed(THERE), options=ReadOptions(directed=True)).notes == ()


def test_there_are_two_hundred_forms() -> None:
    assert len(FORMS) + len(OBJECTS) >= 200
