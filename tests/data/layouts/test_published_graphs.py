"""Published graphs in three layouts open by path, as large as their sources say."""

import os
from pathlib import Path

import pytest

from tempergat.data import ReadOptions
from tempergat.data.user.open_graph import open_user_graph

# Nodes, edges as stored, features, classes, splits.
SIZES = {
    "squirrel_filtered.npz": (2223, 46998, 2089, 5, 10),
    "wisconsin.npz": (251, 450, 1703, 5, 10),
    "cornell.npz": (183, 277, 1703, 5, 10),
    "texas_4_classes.npz": (183, 279, 1703, 4, 10),
    "coauthor_phy.npz": (34493, 495924, 8415, 5, 0),
    "cora_ml.npz": (2995, 8416, 2879, 7, 0),
    "citeseer_full.npz": (4230, 5358, 602, 6, 0),
    "acm.npz": (3025, 26256, 1870, 3, 0),
    "flickr.npz": (7575, 479476, 12047, 9, 0),
    "blogcatalog.npz": (5196, 343486, 8189, 6, 0),
    "twitch_de": (9498, 153138, None, 2, 0),
    "facebook": (22470, 171002, None, 4, 0),
}


def find(name: str) -> Path:
    for folder in os.environ.get("TEMPERGAT_MIRROR", "").split(os.pathsep):
        path = Path(folder) / "more" / name
        if folder and path.exists():
            return path
    pytest.skip(f"more/{name} is in no folder of TEMPERGAT_MIRROR")


@pytest.mark.parametrize("name", SIZES)
def test_published_graph_has_the_size_of_its_source(name: str) -> None:
    nodes, edges, features, classes, splits = SIZES[name]
    path = find(name)
    opened = open_user_graph(path, options=ReadOptions(directed=True))
    dataset = opened.unsplit
    assert dataset.data.num_nodes == nodes
    assert dataset.data.num_edges == edges
    assert features in (None, dataset.data.x.shape[1])
    assert dataset.predicted.width == classes
    assert len(opened.splits) == splits


@pytest.mark.parametrize(
    "name", ["cora_ml.npz", "citeseer_full.npz", "cornell.npz", "twitch_de"]
)
def test_edges_listed_once_are_followed_both_ways_and_said(name: str) -> None:
    dataset = open_user_graph(find(name)).unsplit
    assert dataset.undirected
    assert dataset.data.num_edges > 1.8 * SIZES[name][1]
    assert "--directed" in " ".join(dataset.notes)
