"""Benchmark graphs whose neighbours are often of different classes."""

from functools import partial

from tempergat.data.catalog.entry import Entry, on_first_use
from tempergat.data.catalog.files import FILES

_heterophilous_entry = partial(
    Entry,
    reader=on_first_use("readers.heterophilous.read_heterophilous"),
    license="MIT (yandex-research/heterophilous-graphs)",
    split="official: 50 / 25 / 25 %, ten of them",
    num_splits=10,
)
# Graphs of older papers, which the same authors publish with edges both ways.
_older_heterophilous_entry = partial(
    _heterophilous_entry, split="official: 48 / 32 / 20 %, ten of them"
)
_webkb_entry = partial(
    Entry,
    reader=on_first_use("readers.geom_gcn.read_webkb"),
    num_features=1_703,
    num_classes=5,
    split="official: 48 / 32 / 20 %, ten of them (geom-gcn)",
    num_splits=10,
)

HETEROPHILOUS_ENTRIES: tuple[Entry, ...] = (
    Entry(
        name="actor",
        description="actors on the same Wikipedia pages",
        reader=on_first_use("readers.geom_gcn.read_actor"),
        files=FILES["actor"],
        folders=("actor", "film"),
        num_nodes=7_600,
        num_edges=30_019,
        num_features=932,
        num_classes=5,
        split="official: 48 / 32 / 20 %, ten of them",
        num_splits=10,
    ),
    _heterophilous_entry(
        name="roman-empire",
        description="words of a Wikipedia article; their role in the sentence",
        files=FILES["roman-empire"],
        folders=("roman_empire", "more"),
        num_nodes=22_662,
        num_edges=65_854,
        num_features=300,
        num_classes=18,
    ),
    _heterophilous_entry(
        name="amazon-ratings",
        description="products bought together; their rating",
        files=FILES["amazon-ratings"],
        folders=("amazon_ratings", "more"),
        num_nodes=24_492,
        num_edges=186_100,
        num_features=300,
        num_classes=5,
    ),
    _heterophilous_entry(
        name="minesweeper",
        description="cells of a grid; mine or not",
        files=FILES["minesweeper"],
        folders=("minesweeper", "more"),
        num_nodes=10_000,
        num_edges=78_804,
        num_features=7,
        num_classes=2,
        metric="roc_auc",
    ),
    _heterophilous_entry(
        name="tolokers",
        description="crowd workers who shared a task; banned or not",
        files=FILES["tolokers"],
        folders=("tolokers",),
        num_nodes=11_758,
        num_edges=1_038_000,
        num_features=10,
        num_classes=2,
        metric="roc_auc",
    ),
    _heterophilous_entry(
        name="questions",
        description="users who answered each other's questions; still active or not",
        files=FILES["questions"],
        folders=("questions", "more"),
        num_nodes=48_921,
        num_edges=307_080,
        num_features=301,
        num_classes=2,
        metric="roc_auc",
    ),
    _older_heterophilous_entry(
        name="chameleon_filtered",
        description="Wikipedia pages on chameleons, without repeated pages; traffic",
        files=FILES["chameleon_filtered"],
        folders=("chameleon_filtered", "more"),
        num_nodes=890,
        num_edges=17_708,
        num_features=2_325,
        num_classes=5,
    ),
    _older_heterophilous_entry(
        name="squirrel_filtered",
        description="Wikipedia pages on squirrels, without repeated pages; traffic",
        files=FILES["squirrel_filtered"],
        folders=("squirrel_filtered", "more"),
        num_nodes=2_223,
        num_edges=93_996,
        num_features=2_089,
        num_classes=5,
    ),
    _older_heterophilous_entry(
        name="texas",
        description="pages of a university, links followed both ways (WebKB)",
        files=FILES["texas"],
        folders=("texas", "more"),
        num_nodes=183,
        num_edges=None,
        num_features=1_703,
        num_classes=5,
        note="a class has a single node; texas_4_classes is without it, and "
        "webkb-texas has the links as they point",
    ),
    _older_heterophilous_entry(
        name="texas_4_classes",
        description="texas without the class of one node (WebKB)",
        files=FILES["texas_4_classes"],
        folders=("texas_4_classes", "more"),
        num_nodes=183,
        num_edges=558,
        num_features=1_703,
        num_classes=4,
        note="the node of the fifth class stays in the graph, without a label",
    ),
    _older_heterophilous_entry(
        name="wisconsin",
        description="pages of a university, links followed both ways (WebKB)",
        files=FILES["wisconsin"],
        folders=("wisconsin", "more"),
        num_nodes=251,
        num_edges=900,
        num_features=1_703,
        num_classes=5,
        note="webkb-wisconsin has the links as they point",
    ),
    _older_heterophilous_entry(
        name="cornell",
        description="pages of a university, links followed both ways (WebKB)",
        files=FILES["cornell"],
        folders=("cornell", "more"),
        num_nodes=183,
        num_edges=554,
        num_features=1_703,
        num_classes=5,
        note="webkb-cornell has the links as they point",
    ),
    *(
        _webkb_entry(
            name=f"webkb-{name}",
            description="pages of a university, links as they point (WebKB)",
            files=FILES[f"webkb-{name}"],
            folders=(f"webkb/{name}", f"webkb-{name}"),
            num_nodes=nodes,
            num_edges=edges,
            note=f"as PyG's WebKB reads it; {name} follows links both ways",
        )
        for name, nodes, edges in (
            ("texas", 183, 325),
            ("wisconsin", 251, 515),
            ("cornell", 183, 298),
        )
    ),
)
