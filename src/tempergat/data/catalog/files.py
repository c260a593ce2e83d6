"""The raw files of each dataset: addresses, sizes and checksums.

They are rows of `files.csv`. Sizes and checksums are empty there where nobody has
hashed the file itself.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class RemoteFile:
    """One file to download.

    Attributes:
        name: Its name in the raw folder.
        url: Where it is published.
        size: Its length in bytes; None where unknown.
        sha256: Its checksum; None where unknown.
        members: For an archive, the files read out of it, named without the archive's
            top folder. A mirror may hold these instead of the archive.
        copies: Names under which others publish the same content: the one file, or
            the files in place of the archive. A folder of the dataset may hold these.
    """

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None
    members: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()


_MAGNN_MEMBERS = (
    "adjM.npz",
    "features_0.npz",
    "features_1.npz",
    "labels.npy",
    "node_types.npy",
    "train_val_test_idx.npz",
)
_OGB_HOMOGENEOUS = (
    "raw/edge.csv.gz",
    "raw/node-feat.csv.gz",
    "raw/node-label.csv.gz",
    "raw/num-node-list.csv.gz",
)
_OGB_SPLITS = ("train.csv.gz", "valid.csv.gz", "test.csv.gz")
_MAG_RELATIONS = (
    "author___affiliated_with___institution",
    "author___writes___paper",
    "paper___cites___paper",
    "paper___has_topic___field_of_study",
)
_TWITCH_FOLDERS = ("DE", "ENGB", "ES", "FR", "PTBR", "RU")


def _musae_members(name: str, words: str) -> tuple[str, ...]:
    return f"{name}_edges.csv", f"{name}{words}.json", f"{name}_target.csv"


_ATTRIBUTED_MEMBERS = ("attrs.npz", "edgelist.txt", "labels.txt")
# What is read out of each dataset's archive.
_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "reddit": ("reddit_data.npz", "reddit_graph.npz"),
    "dblp": (*_MAGNN_MEMBERS, "features_2.npy"),
    "imdb": (*_MAGNN_MEMBERS, "features_2.npz"),
    "ogbn-arxiv": (
        *_OGB_HOMOGENEOUS,
        *(f"split/time/{part}" for part in _OGB_SPLITS),
    ),
    "ogbn-products": (
        *_OGB_HOMOGENEOUS,
        *(f"split/sales_ranking/{part}" for part in _OGB_SPLITS),
    ),
    "ogbn-mag": (
        "raw/num-node-dict.csv.gz",
        "raw/node-feat/paper/node-feat.csv.gz",
        "raw/node-feat/paper/node_year.csv.gz",
        "raw/node-label/paper/node-label.csv.gz",
        *(f"raw/relations/{relation}/edge.csv.gz" for relation in _MAG_RELATIONS),
        *(f"split/time/paper/{part}" for part in _OGB_SPLITS),
    ),
    "flickr": _ATTRIBUTED_MEMBERS,
    "blogcatalog": _ATTRIBUTED_MEMBERS,
    "facebook": _musae_members("musae_facebook", "_features"),
    "github": _musae_members("musae_git", "_features"),
    # The words of the German streamers are in a file with a shorter name.
    "twitch": tuple(
        f"{folder}/{member}"
        for folder in _TWITCH_FOLDERS
        for member in _musae_members(
            f"musae_{folder}", "" if folder == "DE" else "_features"
        )
    ),
}
_MUSAE_COPIES = ("edges.csv", "features.json", "target.csv")
_COPIES: Mapping[str, tuple[str, ...]] = {
    "coauthor_cs": ("coauthor_cs.npz",),
    "coauthor_physics": ("coauthor_phy.npz",),
    "cora_full": ("cora_full.npz",),
    "citeseer_full": ("citeseer_full.npz",),
    "flickr": ("flickr.npz",),
    "blogcatalog": ("blogcatalog.npz",),
    "facebook": _MUSAE_COPIES,
    "github": _MUSAE_COPIES,
    "twitch": _MUSAE_COPIES,
}


def _read_table() -> dict[str, tuple[RemoteFile, ...]]:
    table = resources.files(__package__) / "files.csv"
    found: dict[str, tuple[RemoteFile, ...]] = {}
    for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines()):
        file = RemoteFile(
            name=row["file"],
            url=row["url"],
            size=int(row["bytes"]) if row["bytes"] else None,
            sha256=row["sha256"] or None,
            members=_MEMBERS.get(row["dataset"], ()),
            copies=_COPIES.get(row["dataset"], ()),
        )
        found[row["dataset"]] = (*found.get(row["dataset"], ()), file)
    return found


# The raw files by the dataset they are published for.
FILES: Mapping[str, tuple[RemoteFile, ...]] = _read_table()
