"""Every dataset that must be downloaded, end to end, from small archives."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from tempergat.base.errors import UserError
from tempergat.data import Dataset, ReadOptions, loading
from tempergat.data.catalog.entries import CATALOG, Entry
from tempergat.data.fetch.locate import obtain
from tempergat.data.readers.ogb import even_quantiles
from tests.data.conftest import Server, served
from tests.support import raw_layouts
from tests.support.entries import load_entry

pytestmark = pytest.mark.usefixtures("no_mirror")

MASKS = ("train_mask", "val_mask", "test_mask")


def nodes_of(store: object, mask: str) -> list[int]:
    return store[mask].nonzero().flatten().tolist()  # type: ignore[index,no-any-return]


EDGES = [(0, 1), (1, 2), (3, 0), (2, 1)]
FEATURES = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
LABELS = np.array([2, 0, 1, 2])
PARTS = {"train": [0, 3], "valid": [1], "test": [2]}


def arxiv(server: Server) -> Entry:
    archive = raw_layouts.ogb_homogeneous(
        "arxiv", "time", EDGES, FEATURES, LABELS, PARTS
    )
    return served(server, "ogbn-arxiv", 4, 3, archive)


def test_arxiv_is_symmetrised_unless_directed(server: Server, tmp_path: Path) -> None:
    entry = arxiv(server)
    dataset = load_entry(entry, tmp_path)
    pairs = [(0, 1), (0, 3), (1, 0), (1, 2), (2, 1), (3, 0)]
    assert dataset.data.edge_index.T.tolist() == [list(pair) for pair in pairs]
    assert torch.allclose(dataset.data.x, torch.from_numpy(FEATURES))
    assert dataset.data.y.tolist() == LABELS.tolist()
    assert dataset.data.y.dtype == torch.int64
    assert [nodes_of(dataset.data, mask) for mask in MASKS] == [[0, 3], [1], [2]]
    directed = load_entry(entry, tmp_path, options={"directed": True})
    assert sorted(map(tuple, directed.data.edge_index.T.tolist())) == sorted(EDGES)
    assert directed.fingerprint != dataset.fingerprint
    made = load_entry(entry, tmp_path, split="25/25/50")
    assert made.fingerprint != dataset.fingerprint
    assert len(server.requests) == 1


def test_products_has_both_directions_of_every_listed_edge(
    server: Server, tmp_path: Path
) -> None:
    listed = [(0, 1), (1, 2), (0, 3)]
    archive = raw_layouts.ogb_homogeneous(
        "products", "sales_ranking", listed, FEATURES, LABELS, PARTS
    )
    data = load_entry(served(server, "ogbn-products", 4, 3, archive), tmp_path).data
    both = sorted(listed + [(b, a) for a, b in listed])
    assert data.edge_index.T.tolist() == [list(pair) for pair in both]


def test_counts_and_nodes_may_be_written_with_a_decimal_point(
    server: Server, tmp_path: Path
) -> None:
    entry = arxiv(server)
    expected = load_entry(entry, tmp_path).fingerprint
    raw = tmp_path / "ogbn-arxiv" / "raw" / "raw"
    decimal = [[f"{node}.0" for node in edge] for edge in EDGES]
    (raw / "edge.csv.gz").write_bytes(raw_layouts.csv_gz(decimal))
    (raw / "num-node-list.csv.gz").write_bytes(raw_layouts.csv_gz([("4.0",)]))
    shutil.rmtree(tmp_path / "ogbn-arxiv" / "processed")
    assert load_entry(entry, tmp_path).fingerprint == expected


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"num_nodes": 9}, "graph of 4 nodes, but ogbn-arxiv has 9 nodes"),
        ({"num_edges": 300}, "graph of 6 edges, but ogbn-arxiv has 300 edges"),
        ({"num_features": 128}, "graph of 3 features, but ogbn-arxiv has 128 features"),
        ({"num_classes": 40}, "graph of 3 classes, but ogbn-arxiv has 40 classes"),
        ({"node_types": 2}, "graph of 1 node types, but ogbn-arxiv has 2 node types"),
        ({"edge_types": 2}, "graph of 1 edge types, but ogbn-arxiv has 2 edge types"),
        ({"split_sizes": (2, 2, 1)}, "1 validation nodes, but .* 2 validation nodes"),
        (
            {"num_features": 128, "num_edges": 300},
            "raw/raw holds a graph of 6 edges and 3 features, but .* 300 edges and "
            "128 features; it belongs to another dataset or is damaged, so put the "
            "right one in its place",
        ),
        (
            {"num_nodes": 9, "num_edges": 123_456, "num_features": 128},
            "graph of 4 nodes, 6 edges and 3 features, but .* 9 nodes, 123,456 edges "
            "and 128 features",
        ),
    ],
)
def test_graph_with_other_counts_than_the_catalogue_is_refused(
    facts: dict[str, object], message: str, server: Server, tmp_path: Path
) -> None:
    entry = arxiv(server)
    assert not load_entry(entry, tmp_path).notes
    other = dataclasses.replace(entry, **facts)
    with pytest.raises(UserError, match=message):
        load_entry(other, tmp_path)
    # Whole graphs that were processed earlier are compared too.
    assert load_entry(entry, tmp_path).data.num_nodes == 4


def test_count_of_another_version_is_noted(server: Server, tmp_path: Path) -> None:
    ring = [(node, (node + 1) % 300) for node in range(300)]
    parts = {"train": [0, 3], "valid": [1], "test": [2]}
    features, labels = np.ones((300, 2)), np.arange(300) % 3
    archive = raw_layouts.ogb_homogeneous(
        "products", "sales_ranking", ring, features, labels, parts
    )
    entry = served(server, "ogbn-products", 300, 3, archive)
    entry = dataclasses.replace(entry, num_edges=602, split_sizes=(2, 1, 1))
    for _ in range(2):
        (note,) = load_entry(entry, tmp_path).notes
        assert "read with 600 edges, but 602 edges were published" in note


def test_directed_arxiv_has_the_edges_of_the_paper(
    server: Server, tmp_path: Path
) -> None:
    entry = dataclasses.replace(arxiv(server), num_edges=6, paper_edges=4)
    assert not load_entry(entry, tmp_path).notes
    assert not load_entry(entry, tmp_path, options={"directed": True}).notes
    wrong = dataclasses.replace(entry, paper_edges=9)
    with pytest.raises(UserError, match=r"graph of 4 edges, but .* 9 edges"):
        load_entry(wrong, tmp_path / "elsewhere", options={"directed": True})


MAG_COUNTS = {"author": 3, "field_of_study": 2, "institution": 2, "paper": 10}
MAG_RELATIONS = {
    "author___affiliated_with___institution": [(0, 1), (2, 0)],
    "author___writes___paper": [(0, 0), (1, 9), (2, 4)],
    "paper___cites___paper": [(0, 1), (1, 0), (9, 3)],
    "paper___has_topic___field_of_study": [(0, 1), (5, 0)],
}
YEARS = np.array([2010, 2011, 2012, 2013, 2014, 2015, 2016, 2017, 2018, 2019])


def mag(server: Server, name: str) -> Entry:
    archive = raw_layouts.ogb_mag(
        MAG_COUNTS,
        MAG_RELATIONS,  # type: ignore[arg-type]
        np.repeat(np.arange(10, dtype=np.float32)[:, None], 4, axis=1),
        np.arange(10) % 3,
        YEARS,
        {"train": list(range(8)), "valid": [8], "test": [9]},
    )
    return served(
        server, name, sum(MAG_COUNTS.values()), 5 if name == "mag-year" else 3, archive
    )


def check_reverse_edges(dataset: Dataset) -> None:
    data = dataset.data
    for source, relation, target in data.edge_types:
        if source != target and not relation.startswith("rev_"):
            forward = data[source, relation, target].edge_index
            backward = data[target, f"rev_{relation}", source].edge_index
            assert torch.equal(forward, backward.flip(0))


def test_mag_has_seven_relations_with_their_reverses(
    server: Server, tmp_path: Path
) -> None:
    dataset = load_entry(mag(server, "ogbn-mag"), tmp_path)
    data = dataset.data
    assert {kind: data[kind].num_nodes for kind in data.node_types} == MAG_COUNTS
    assert len(data.edge_types) == CATALOG["ogbn-mag"].edge_types
    check_reverse_edges(dataset)
    cites = data["paper", "cites", "paper"].edge_index
    assert cites.T.tolist() == [[0, 1], [1, 0], [3, 9], [9, 3]]
    assert dataset.target == "paper"
    assert nodes_of(dataset.store, "test_mask") == [9]


def test_mag_has_averaged_features_as_in_h2gb_or_learned_ones(
    server: Server, tmp_path: Path
) -> None:
    # Each paper has its number as its feature, four times.
    entry = mag(server, "ogbn-mag")
    data = load_entry(entry, tmp_path).data
    means = {
        "author": [0.0, 9.0, 4.0],
        "field_of_study": [5.0, 0.0],
        # One of author 2, and one of author 0.
        "institution": [4.0, 0.0],
    }
    for kind, expected in means.items():
        assert data[kind].x.tolist() == [[mean] * 4 for mean in expected]
        assert data[kind].x.dtype == torch.float32
    learned = load_entry(entry, tmp_path, options={"features": "learned"}).data
    assert [kind for kind in learned.node_types if "x" in learned[kind]] == ["paper"]
    assert torch.equal(learned["paper"].x, data["paper"].x)
    with pytest.raises(UserError, match="'mean'; choose averaged or learned"):
        load_entry(entry, tmp_path, options={"features": "mean"})
    year = load_entry(mag(server, "mag-year"), tmp_path).data
    assert torch.equal(year["author"].x, data["author"].x)


def test_features_of_mag_are_an_option_and_those_of_cora_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def open_entry(entry: Entry, *arguments: object) -> None:
        asked.append(arguments[-1])
        raise UserError("opened")

    monkeypatch.setattr(loading, "open_entry", open_entry)
    with pytest.raises(UserError, match="opened"):
        loading.as_dataset("ogbn-mag", options=ReadOptions(features=("learned",)))
    assert asked == [{"features": "learned"}]
    with pytest.raises(UserError, match="--features is for your own graph"):
        loading.as_dataset("cora", options=ReadOptions(features=("learned",)))


def test_mag_year_has_five_even_classes_and_a_fixed_split(
    server: Server, tmp_path: Path
) -> None:
    first = load_entry(mag(server, "mag-year"), tmp_path)
    assert first.store.y.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert first.split == "made: 50/25/25 with seed 0"
    sizes = [int(first.store[mask].sum()) for mask in MASKS]
    assert sizes == [5, 3, 2]
    second = load_entry(mag(server, "mag-year"), tmp_path / "elsewhere")
    assert first.fingerprint == second.fingerprint
    other = load_entry(mag(server, "mag-year"), tmp_path, split_seed=1)
    assert other.fingerprint != first.fingerprint


def test_mag_and_mag_year_share_one_download(server: Server, tmp_path: Path) -> None:
    load_entry(mag(server, "ogbn-mag"), tmp_path)
    load_entry(mag(server, "mag-year"), tmp_path)
    assert len(server.requests) == 1


def test_year_equal_to_a_quantile_belongs_to_the_upper_class() -> None:
    years = np.array([2010] * 4 + [2011] * 4 + [2012] * 2)
    # The 20, 40, 60 and 80 % quantiles are 2010, 2010.6, 2011 and 2011.2.
    assert even_quantiles(years, 5).tolist() == [1] * 4 + [3] * 4 + [4] * 2


def test_reddit_takes_its_split_from_the_node_types(
    server: Server, tmp_path: Path
) -> None:
    edges = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
    archive = raw_layouts.reddit(
        edges, FEATURES.astype(np.float64), LABELS, np.array([1, 2, 3, 1])
    )
    dataset = load_entry(served(server, "reddit", 4, 3, archive), tmp_path)
    assert dataset.metric == "micro_f1"
    assert dataset.data.x.dtype == torch.float32
    assert torch.equal(dataset.data.edge_index.long(), torch.from_numpy(edges))
    assert [nodes_of(dataset.data, mask) for mask in MASKS] == [[0, 3], [1], [2]]


def test_reddit_with_too_few_rows_names_them(server: Server, tmp_path: Path) -> None:
    edges = np.array([[0, 1], [1, 0]])
    archive = raw_layouts.reddit(edges, FEATURES[:3], LABELS, np.array([1, 2, 3, 1]))
    with pytest.raises(UserError, match="3 rows of feature for 4 nodes"):
        load_entry(served(server, "reddit", 4, 3, archive), tmp_path)


def test_a_node_type_that_reddit_does_not_have_is_named(
    server: Server, tmp_path: Path
) -> None:
    edges = np.array([[0, 1], [1, 0]])
    archive = raw_layouts.reddit(edges, FEATURES, LABELS, np.array([1, 2, 4, 3]))
    with pytest.raises(UserError, match="row 3 of node_types has type 4; types are 1"):
        load_entry(served(server, "reddit", 4, 3, archive), tmp_path)


def test_a_relation_of_mag_has_as_many_edges_as_the_archive_says(
    server: Server, tmp_path: Path
) -> None:
    entry = mag(server, "ogbn-mag")
    obtain(entry, tmp_path)
    cites = tmp_path / "ogbn-mag/raw/raw/relations/paper___cites___paper"
    (cites / "edge.csv.gz").write_bytes(raw_layouts.csv_gz([(0, 1), (1, 0)]))
    with pytest.raises(UserError, match=r"cites.*has 2 rows, but num-edge-list.* 3;"):
        load_entry(entry, tmp_path)


def test_mag_without_a_node_type_says_what_is_missing(
    server: Server, tmp_path: Path
) -> None:
    entry = mag(server, "ogbn-mag")
    obtain(entry, tmp_path)
    names = ["author", "institution", "paper"]
    counts = raw_layouts.csv_gz([names, [MAG_COUNTS[name] for name in names]])
    path = tmp_path / "ogbn-mag/raw/raw/num-node-dict.csv.gz"
    path.write_bytes(counts)
    with pytest.raises(UserError, match=r"\(no 'field_of_study'\)"):
        load_entry(entry, tmp_path)


PROFILES = [
    raw_layouts.pokec_profile(
        2, 0, 40, 1, "zilinsky kraj, zilina", 0, {"body": "hello", "music": "no club"}
    ),
    raw_layouts.pokec_profile(
        1,
        1,
        80,
        0,
        "bratislavsky kraj, bratislava",
        30,
        {"music": raw_layouts.club("rock") + raw_layouts.club("folk")},
    ),
    raw_layouts.pokec_profile(
        3,
        1,
        0,
        "null",
        "null",
        "null",
        {"music": raw_layouts.club("rock"), "more": "x", "health": "None"},
    ),
]


def pokec(server: Server, friends: list[tuple[int, int]]) -> Entry:
    profiles = raw_layouts.csv_gz(PROFILES, "\t")
    relationships = raw_layouts.csv_gz(friends, "\t")
    return served(server, "pokec", 5, 2, profiles, relationships)


def test_pokec_has_users_clubs_and_their_features(
    server: Server, tmp_path: Path
) -> None:
    dataset = load_entry(
        pokec(server, [(1, 2), (2, 1), (3, 1)]), tmp_path, split="100/0/0"
    )
    data = dataset.data
    assert len(data.node_types) == 16
    assert len(data.edge_types) == 31
    check_reverse_edges(dataset)
    assert data["user"].y.tolist() == [0, 1, -1]
    assert nodes_of(data["user"], "train_mask") == [0, 1]
    friends = data["user", "has_friend", "user"].edge_index
    assert friends.T.tolist() == [[0, 1], [0, 2], [1, 0], [2, 0]]
    assert data["music"].num_nodes == 2
    lists = data["user", "lists", "music"].edge_index.T.tolist()
    assert sorted(lists) == [[0, 0], [0, 1], [2, 1]]
    assert all(
        data[kind].num_nodes == 0 for kind in raw_layouts.POKEC_CLUBS if kind != "music"
    )

    x = data["user"].x.numpy()
    # Three numbers, three regions of which one is unknown, and 51 texts.
    assert x.shape == (3, 3 + 3 + 51)
    numbers = np.array([[1, 80, 30], [0, 40, 23], [1, 0, 0]], dtype=np.float64)
    standard = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    assert np.allclose(x[:, :3], standard, atol=1e-6)
    assert x[:, 3:6].tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    filled = [np.flatnonzero(row).tolist() for row in x[:, 6:]]
    music = raw_layouts.POKEC_TEXTS.index("music")
    assert filled == [[music], [0, music], [music, 50]]


def test_pokec_friend_without_a_profile_is_named(
    server: Server, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"relationships.txt.gz, row 2 names a user"):
        load_entry(pokec(server, [(1, 2), (2, 9)]), tmp_path)


def test_pokec_user_who_is_listed_twice_is_named(
    server: Server, tmp_path: Path
) -> None:
    again = raw_layouts.csv_gz([*PROFILES, PROFILES[1]], "\t")
    entry = served(server, "pokec", 6, 2, again, raw_layouts.csv_gz([(1, 2)], "\t"))
    with pytest.raises(
        UserError, match=r"profiles.txt.gz, row 4 lists user 1 a second"
    ):
        load_entry(entry, tmp_path)


@pytest.mark.parametrize(
    ("member", "content", "named"),
    [
        ("raw/edge.csv.gz", raw_layouts.csv_gz([(0, 1), (1, 9)]), "edge.*row 2"),
        ("raw/edge.csv.gz", raw_layouts.csv_gz([(0, 1), (1, "x")]), "edge.*row 2"),
        ("raw/edge.csv.gz", raw_layouts.csv_gz([(0, 1, 2)]), "edge.*row 1"),
        ("raw/edge.csv.gz", raw_layouts.csv_gz([(0, 1), (1, 1.5)]), "edge.*row 2"),
        ("raw/edge.csv.gz", raw_layouts.csv_gz([(0, 1), (1, 2.0**60)]), "edge.*row 2"),
        ("raw/edge.csv.gz", b"no gzip", "edge.*damaged"),
        ("raw/node-feat.csv.gz", raw_layouts.csv_gz(FEATURES[:2].tolist()), "2 rows"),
        ("raw/node-label.csv.gz", raw_layouts.csv_gz([(0,), ("",)] * 2), "label"),
        ("raw/node-label.csv.gz", raw_layouts.csv_gz([(1.5,)] * 4), "node 0 .* 1.5"),
        ("raw/node-label.csv.gz", raw_layouts.csv_gz([(1e30,)] * 4), "label 1e.30"),
        ("raw/num-node-list.csv.gz", raw_layouts.csv_gz([("many",)]), "num-node"),
        ("raw/num-node-list.csv.gz", raw_layouts.csv_gz([(4,)] * 2), "2 rows"),
        ("raw/num-node-list.csv.gz", raw_layouts.csv_gz([]), "0 rows"),
        (
            "raw/num-edge-list.csv.gz",
            raw_layouts.csv_gz([(5,)]),
            r"edge.csv.gz has 4 rows, but num-edge-list.csv.gz says 5; replace both",
        ),
        ("split/time/train.csv.gz", raw_layouts.csv_gz([(77,)]), "train.*node 77"),
        (
            "split/time/train.csv.gz",
            raw_layouts.csv_gz([(3,), (0,), (3,)]),
            r"train.csv.gz, row 3 lists node 3 a second time; replace it",
        ),
        (
            "split/time/test.csv.gz",
            raw_layouts.csv_gz([(2,), (3,)]),
            "node 3 into train_mask and test_mask",
        ),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_damaged_member_of_an_ogb_archive_is_named(
    server: Server, tmp_path: Path, member: str, content: bytes, named: str
) -> None:
    entry = arxiv(server)
    raw = tmp_path / "ogbn-arxiv" / "raw"
    load_entry(entry, tmp_path)
    (raw / member).write_bytes(content)
    with pytest.raises(UserError, match=named):
        load_entry(entry, tmp_path, options={"directed": True})
    assert not (tmp_path / "ogbn-arxiv" / "processed-directed").exists()
