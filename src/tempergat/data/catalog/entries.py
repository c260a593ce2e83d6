"""The catalogue: facts about every dataset that can be loaded by name.

Numbers of edges are of directed edges as loaded; `paper_edges` is the number usually
printed, where that differs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tempergat.base import UserError, did_you_mean
from tempergat.data.catalog.files import FILES, RemoteFile

# The catalogue is shown without torch.
if TYPE_CHECKING:
    from tempergat.data.formats.raw_graph import Graph
    from tempergat.data.splits import GraphWithSplits


def _on_first_use(function: str) -> Callable[..., Any]:
    """A function of `tempergat.data` that is imported when it is first called.

    Args:
        function: Its module and name, such as `"readers.ogb.read_arxiv"`.
    """
    module, name = f"tempergat.data.{function}".rsplit(".", 1)

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*arguments, **options)

    return call


@dataclass(frozen=True)
class Entry:
    """One dataset of the catalogue.

    Attributes:
        name: The name for `load`.
        description: One line on what the graph is.
        files: The raw files; empty for a generated graph.
        folders: Where a mirror may keep the files, relative to it.
        num_nodes: Number of nodes, all types together.
        num_edges: Number of directed edges as loaded, all types together; None where
            it is only known once the graph has been loaded.
        num_features: Features of the classified nodes.
        num_classes: Number of classes.
        reader: Reads the raw files; takes their paths by name and the dataset's
            options.
        generator: Samples a graph that has no files; takes the dataset's options.
        metric: `"accuracy"` or `"micro_f1"`.
        license: Licence as stated by the source.
        split: Description of the split.
        num_splits: Number of official splits; 0 where a split must be made.
        made_split: The split that is made where there is no official one.
        target: Node type that is classified; None in a homogeneous graph.
        node_types: Number of node types.
        edge_types: Number of edge types, reverse ones included.
        paper_edges: The count the paper prints, where it differs from `num_edges`.
        h2_index: The H2Index the paper prints.
        keep_processed: Whether the graph is kept as memory-mapped arrays.
        raw_name: The dataset whose raw files these are, where it is another one.
        swapped_files: Files to try if `files` hold the graph of another dataset.
        options: Options of `load` this dataset takes beside the common ones.
        recipe: Recipe it is trained with, where that is not called like the dataset.
        note: What else a user should know.
    """

    name: str
    description: str
    files: tuple[RemoteFile, ...]
    folders: tuple[str, ...]
    num_nodes: int
    num_edges: int | None
    num_features: int
    num_classes: int
    reader: Callable[..., Graph] | None = None
    generator: Callable[..., GraphWithSplits] | None = None
    metric: str = "accuracy"
    license: str = "none stated"
    split: str = ""
    num_splits: int = 1
    made_split: str = "60/20/20"
    target: str | None = None
    node_types: int = 1
    edge_types: int = 1
    paper_edges: int | None = None
    h2_index: float | None = None
    keep_processed: bool = False
    raw_name: str = ""
    swapped_files: tuple[RemoteFile, ...] = ()
    options: tuple[str, ...] = ()
    recipe: str = ""
    note: str = ""

    @property
    def raw_folder(self) -> str:
        """The folder under the data root that holds the raw files."""
        return f"{self.raw_name or self.name}/raw"

    @property
    def download_bytes(self) -> int | None:
        """Size of all files together, or None where one is unknown."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size)


_planetoid_entry = partial(
    Entry,
    reader=_on_first_use("readers.planetoid.read_planetoid"),
    license="MIT (kimiyoung/planetoid)",
    split="public: 20 nodes per class / 500 / 1000",
)
_mag_entry = partial(
    Entry,
    raw_name="ogbn-mag",
    files=FILES["ogbn-mag"],
    folders=("ogbn_mag", "ogbn-mag", "mag"),
    num_nodes=1_939_743,
    num_edges=42_182_144,
    num_features=128,
    license="ODC-BY",
    target="paper",
    node_types=4,
    edge_types=7,
    keep_processed=True,
    note="only papers have features; H2GB gives the other types averages of them",
)
_oag_entry = partial(
    Entry,
    reader=_on_first_use("readers.oag.read_oag"),
    num_features=768,
    license="ODC-BY",
    split="by year of publication: up to 2016 / 2017 / from 2018",
    target="paper",
    node_types=4,
    edge_types=22,
    keep_processed=True,
)
_magnn_entry = partial(Entry, split="400 / 400 / the rest", recipe="typed")
_generated_entry = partial(
    Entry,
    files=(),
    folders=(),
    num_nodes=2000,
    num_edges=None,
    num_features=32,
    num_classes=2,
    license="generated, no restriction",
    split="made: 60/20/20",
    num_splits=0,
    recipe="demo",
)

_ENTRIES: tuple[Entry, ...] = (
    _generated_entry(
        name="csbm",
        description="contextual stochastic block model, generated",
        generator=_on_first_use("block_model.sample_graph"),
        options=("n", "a", "b", "mu", "d", "classes", "sigma", "rho", "tau", "seed"),
        note="sizes are those of the default parameters; trained with the recipe demo",
    ),
    _generated_entry(
        name="demo",
        description="demonstration: a csbm graph with noisy and lost features",
        generator=_on_first_use("block_model.sample_demo"),
        note="csbm with a=10, b=5 and rho=0.3; `tempergat compare` takes it when no "
        "graph is given",
    ),
    _planetoid_entry(
        name="cora",
        description="citation graph, bag of words",
        files=FILES["cora"],
        folders=("planetoid/Cora", "Cora", "cora"),
        num_nodes=2_708,
        num_edges=10_556,
        num_features=1_433,
        num_classes=7,
    ),
    _planetoid_entry(
        name="citeseer",
        description="citation graph, bag of words",
        files=FILES["citeseer"],
        folders=("planetoid/CiteSeer", "CiteSeer", "citeseer"),
        num_nodes=3_327,
        num_edges=9_104,
        num_features=3_703,
        num_classes=6,
        note="15 nodes the test files leave out have no features and no label",
    ),
    _planetoid_entry(
        name="pubmed",
        description="citation graph, TF-IDF words",
        files=FILES["pubmed"],
        folders=("planetoid/PubMed", "PubMed", "pubmed"),
        num_nodes=19_717,
        num_edges=88_648,
        num_features=500,
        num_classes=3,
    ),
    Entry(
        name="ogbn-arxiv",
        description="citations among arXiv papers",
        reader=_on_first_use("readers.ogb.read_arxiv"),
        files=FILES["ogbn-arxiv"],
        folders=("ogbn_arxiv", "ogbn-arxiv", "arxiv"),
        num_nodes=169_343,
        num_edges=2_315_598,
        paper_edges=1_166_243,
        num_features=128,
        num_classes=40,
        license="ODC-BY",
        split="official, by time: up to 2017 / 2018 / from 2019",
        keep_processed=True,
        options=("directed",),
        note="each citation is followed both ways; directed=True keeps the 1,166,243 "
        "citations as they point",
    ),
    Entry(
        name="ogbn-products",
        description="Amazon products bought together",
        reader=_on_first_use("readers.ogb.read_products"),
        files=FILES["ogbn-products"],
        folders=("ogbn_products", "ogbn-products", "products"),
        num_nodes=2_449_029,
        num_edges=123_718_280,
        paper_edges=61_859_140,
        num_features=100,
        num_classes=47,
        license="Amazon license",
        split="official, by sales rank: top 8 % / next 2 % / the rest",
        keep_processed=True,
        note="the archive lists each undirected edge once; both directions are loaded",
    ),
    Entry(
        name="reddit",
        description="Reddit posts commented by the same users (GraphSAGE)",
        reader=_on_first_use("readers.reddit.read_reddit"),
        files=FILES["reddit"],
        folders=("reddit", "Reddit"),
        num_nodes=232_965,
        num_edges=114_615_892,
        num_features=602,
        num_classes=41,
        metric="micro_f1",
        split="official, by day of the month",
        keep_processed=True,
    ),
    _mag_entry(
        name="mag-year",
        reader=_on_first_use("readers.ogb.read_mag_year"),
        description="ogbn-mag with five even quantiles of the year as classes (H2GB)",
        num_classes=5,
        split="made: 50/25/25 with seed 0 (H2GB draws it without a seed)",
        num_splits=0,
        made_split="50/25/25",
        h2_index=0.9654,
    ),
    Entry(
        name="pokec",
        description="Slovak social network with clubs of fifteen kinds (H2GB)",
        reader=_on_first_use("readers.pokec.read_pokec"),
        files=FILES["pokec"],
        folders=("pokec", "Pokec"),
        num_nodes=1_731_977,
        num_edges=51_774_836,
        num_features=66,
        num_classes=2,
        split="made: 50/25/25 of the users with a gender, with seed 0 (H2GB draws it "
        "without a seed)",
        num_splits=0,
        made_split="50/25/25",
        target="user",
        node_types=16,
        edge_types=31,
        h2_index=0.9488,
        keep_processed=True,
    ),
    _oag_entry(
        name="oag-chem",
        description="papers on chemistry of the Open Academic Graph (H2GB)",
        files=FILES["oag-chem"],
        swapped_files=FILES["oag-engineering"],
        note="the graph of 1,918,881 nodes and 2,985 journals, by its counts: H2GB's "
        "own code reads chemistry from OAG_Engineering.pt and engineering from "
        "OAG_Chemistry.pt, so both files are tried",
        folders=("oag-chem", "oag"),
        num_nodes=1_918_881,
        num_edges=38_098_014,
        num_classes=2_985,
        h2_index=0.8858,
    ),
    _mag_entry(
        name="ogbn-mag",
        reader=_on_first_use("readers.ogb.read_mag"),
        description="papers, authors, institutions and fields of the Microsoft "
        "Academic Graph",
        num_classes=349,
        split="official, by time: up to 2017 / 2018 / 2019",
        h2_index=0.8773,
    ),
    _oag_entry(
        name="oag-cs",
        description="papers on computer science of the Open Academic Graph (H2GB)",
        files=FILES["oag-cs"],
        folders=("oag-cs", "oag"),
        num_nodes=1_112_691,
        num_edges=27_537_448,
        num_classes=3_514,
        h2_index=0.9652,
    ),
    Entry(
        name="actor",
        description="actors on the same Wikipedia pages",
        reader=_on_first_use("readers.actor.read_actor"),
        files=FILES["actor"],
        folders=("actor", "film"),
        num_nodes=7_600,
        num_edges=30_019,
        num_features=932,
        num_classes=5,
        split="official: 48 / 32 / 20 %, ten of them",
        num_splits=10,
    ),
    Entry(
        name="tolokers",
        description="crowd workers who shared a task; banned or not",
        reader=_on_first_use("readers.tolokers.read_tolokers"),
        files=FILES["tolokers"],
        folders=("tolokers",),
        num_nodes=11_758,
        num_edges=1_038_000,
        num_features=10,
        num_classes=2,
        license="MIT (yandex-research/heterophilous-graphs)",
        split="official: 50 / 25 / 25 %, ten of them",
        num_splits=10,
    ),
    Entry(
        name="amazon_photo",
        description="photo products bought together",
        reader=_on_first_use("readers.amazon.read_amazon"),
        files=FILES["amazon_photo"],
        folders=("amazon_photo", "Photo", "photo"),
        num_nodes=7_650,
        num_edges=238_162,
        num_features=745,
        num_classes=8,
        license="MIT (EdisonLeeeee/GraphData, shchur/gnn-benchmark)",
        split="made: 60/20/20 with seed 0 (there is no official split)",
        num_splits=0,
    ),
    _magnn_entry(
        name="dblp",
        reader=_on_first_use("readers.magnn.read_dblp"),
        description="authors, papers, terms and conferences",
        files=FILES["dblp"],
        folders=("DBLP", "dblp"),
        num_nodes=26_128,
        num_edges=239_566,
        num_features=334,
        num_classes=4,
        target="author",
        node_types=4,
        edge_types=6,
    ),
    _magnn_entry(
        name="imdb",
        reader=_on_first_use("readers.magnn.read_imdb"),
        description="movies, directors and actors",
        files=FILES["imdb"],
        folders=("IMDB", "imdb"),
        num_nodes=11_616,
        num_edges=34_212,
        num_features=3_066,
        num_classes=3,
        target="movie",
        node_types=3,
        edge_types=4,
    ),
)

CATALOG: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def find_entry(name: str) -> Entry:
    """The entry of a name. Case does not matter, and neither does - instead of _.

    Raises:
        UserError: There is no such dataset; the message names the nearest ones.
    """
    by_key = {_key(known): entry for known, entry in CATALOG.items()}
    entry = by_key.get(_key(name))
    if entry is not None:
        return entry
    raise UserError(
        f"there is no dataset {name!r}; {did_you_mean(name, CATALOG)}choose "
        f"{', '.join(CATALOG)}, or give the path of your own graph"
    )


def _key(name: str) -> str:
    return name.lower().replace("_", "-")
