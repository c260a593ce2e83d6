"""Each of the paper's datasets, from an archive in its layout to rows of results."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from studies import results, runner
from studies.homogeneous import study
from studies.results import read_whole_runs
from tempergat.comparison.paper import HETEROGENEOUS, HOMOGENEOUS
from tempergat.comparison.storage.store import Store
from tempergat.data import Dataset, load
from tempergat.training import Recipe, load_recipe
from tests.data.conftest import Server, served, server  # noqa: F401
from tests.support import raw_layouts
from tests.support.entries import load_entry

pytestmark = pytest.mark.slow

NODES = 40
RANDOM = np.random.default_rng(0)
FEATURES = RANDOM.normal(size=(NODES, 4)).astype(np.float32)
LABELS = np.arange(NODES) % 4
EDGES = [(a, (a * 7 + 3) % NODES) for a in range(NODES)]
PARTS = {
    "train": list(range(20)),
    "valid": list(range(20, 30)),
    "test": list(range(30, 40)),
}


def ogb(server: Server, name: str, root: Path) -> Dataset:  # noqa: F811
    short = name.removeprefix("ogbn-")
    split = "time" if short == "arxiv" else "sales_ranking"
    archive = raw_layouts.ogb_homogeneous(short, split, EDGES, FEATURES, LABELS, PARTS)
    return load_entry(served(server, name, NODES, 4, archive), root)


def reddit(server: Server, name: str, root: Path) -> Dataset:  # noqa: F811
    types = np.repeat([1, 2, 3], [20, 10, 10])
    edges = np.array(EDGES).T
    both = np.concatenate([edges, edges[::-1]], axis=1)
    archive = raw_layouts.reddit(both, FEATURES.astype(np.float64), LABELS, types)
    return load_entry(served(server, name, NODES, 4, archive), root)


def mag(server: Server, name: str, root: Path) -> Dataset:  # noqa: F811
    counts = {"author": 9, "field_of_study": 3, "institution": 2, "paper": NODES}
    relations = {
        "author___affiliated_with___institution": [(a, a % 2) for a in range(9)],
        "author___writes___paper": [(p % 9, p) for p in range(NODES)],
        "paper___cites___paper": EDGES,
        "paper___has_topic___field_of_study": [(p, p % 3) for p in range(NODES)],
    }
    years = 2010 + np.arange(NODES) % 10
    archive = raw_layouts.ogb_mag(counts, relations, FEATURES, LABELS, years, PARTS)
    entry = served(
        server, name, sum(counts.values()), 5 if name == "mag-year" else 4, archive
    )
    return load_entry(entry, root)


def pokec(server: Server, name: str, root: Path) -> Dataset:  # noqa: F811
    profiles = [
        raw_layouts.pokec_profile(
            user,
            user % 2,
            10 * (user % 7),
            user % 2,
            f"kraj {user % 3}",
            20 + user,
            {raw_layouts.POKEC_CLUBS[user % 2]: raw_layouts.club(f"club {user % 5}")},
        )
        for user in range(1, NODES + 1)
    ]
    friends = [(a + 1, b + 1) for a, b in EDGES]
    contents = (raw_layouts.csv_gz(rows, "\t") for rows in (profiles, friends))
    return load_entry(served(server, name, NODES + 10, 2, *contents), root)


def oag(server: Server, name: str, root: Path) -> Dataset:  # noqa: F811
    def nodes(kind: str, count: int) -> dict[str, int]:
        return {f"{kind}{number}": number for number in range(count)}

    def table(kind: str, count: int, **more: np.ndarray) -> object:
        vectors = np.empty(count, dtype=object)
        for row in range(count):
            vectors[row] = RANDOM.normal(size=4).astype(np.float32)
        names = np.array(list(nodes(kind, count)), dtype=object)
        return raw_layouts.pandas_table({"id": names, **more, "emb": vectors})

    years = 2013 + np.arange(NODES) % 6
    content = {
        "node_forward": {
            "paper": nodes("p", NODES),
            "author": nodes("a", 9),
            "venue": nodes("v", 3),
        },
        "node_feature": {
            "paper": table("p", NODES, time=years),
            "author": table("a", 9),
            "venue": table("v", 3),
        },
        "edge_list": {
            "paper": {
                "paper": {"PP_cite": {a: {b: 2016} for a, b in EDGES}},
                "author": {"AP_write_first": {p: {p % 9: 2} for p in range(NODES)}},
                "venue": {"rev_PV_Journal": {0: {1: 2015}}},
            },
            "venue": {
                "paper": {
                    "PV_Journal": {
                        v: {p: 2015 for p in range(NODES) if p % 3 == v}
                        for v in range(3)
                    }
                }
            },
        },
    }
    archive = raw_layouts.torch_container(content)
    contents = [archive] * len(served_files(name))
    return load_entry(served(server, name, NODES + 9, 3, *contents), root)


def served_files(name: str) -> tuple[object, ...]:
    from tempergat.data.catalog.entries import CATALOG

    return CATALOG[name].files


MADE: dict[str, Callable[[Server, str, Path], Dataset]] = {
    **dict.fromkeys(("ogbn-arxiv", "ogbn-products"), ogb),
    "reddit": reddit,
    **dict.fromkeys(("ogbn-mag", "mag-year"), mag),
    "pokec": pokec,
    **dict.fromkeys(("oag-cs", "oag-chem"), oag),
}


def shortened(name: str) -> Recipe:
    """A recipe of the paper with one epoch of narrow layers, for one seed."""
    recipe = load_recipe(name)
    heads = min(2, recipe.attention["out_heads"])
    changes = {"epochs": 1, "heads": 2, "out_heads": heads, "hidden_channels": 8}
    if recipe.training == "sampled":
        changes |= {"batch_size": 16, "eval_batch_size": 32}
    if "shared_channels" in recipe.attention:
        changes["shared_channels"] = 4
    attention = {**recipe.attention, **changes}
    attention.pop("channels_per_head", None)
    gcn = {**recipe.gcn, "hidden_channels": 8}
    return recipe.model_copy(update={"runs": 1, "attention": attention, "gcn": gcn})


@pytest.mark.usefixtures("no_mirror")
@pytest.mark.parametrize("dataset", MADE)
def test_a_small_archive_of_every_layout_is_trained_to_rows_of_results(
    dataset: str,
    server: Server,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = MADE[dataset](server, dataset, tmp_path / "data")
    check_rows(dataset, graph, tmp_path, monkeypatch)


@pytest.mark.parametrize("dataset", ["cora", "citeseer", "pubmed"])
def test_the_published_files_of_small_graphs_are_trained_to_rows_of_results(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        graph = load(dataset, root=tmp_path / "data")
    except Exception as error:
        pytest.skip(f"{dataset} is not in TEMPERGAT_MIRROR: {error}")
    check_rows(dataset, graph, tmp_path, monkeypatch)


def check_rows(
    dataset: str, graph: Dataset, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dataset in (*HOMOGENEOUS, *HETEROGENEOUS)
    monkeypatch.setattr(study, "load_recipe", shortened)
    monkeypatch.setattr(results, "STUDIES", folder)
    stage = replace(study.paper_stage(dataset, "toy/runs.csv"), load=lambda name: graph)
    with Store(folder / "store.sqlite") as store:
        runner.Runner(store, torch.device("cpu")).finish(stage)
    runs = read_whole_runs("toy/runs.csv")
    assert len(runs) == 11
    assert {run.status for run in runs} == {"done"}
    assert {"date", "commit"} <= set(runs[0].versions)
