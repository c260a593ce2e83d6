"""Addresses, sizes and checksums of the raw files."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RemoteFile:
    """One file to fetch.

    Attributes:
        name: Its name in the raw folder.
        url: Where it is published.
        size: Its length in bytes; None where unknown.
        sha256: Its checksum; None where unknown.
        members: For an archive, the files read out of it, named without the archive's
            top folder. A mirror may hold these instead of the archive.
    """

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None
    members: tuple[str, ...] = ()


_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_GEOM_GCN = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master"
_OGB = "https://snap.stanford.edu/ogb/data/nodeproppred"
_H2GB = "https://huggingface.co/datasets/junhongmit/H2GB/resolve/main"

_PLANETOID_KNOWN: dict[str, tuple[tuple[str, int, str], ...]] = {
    "cora": (
        (
            "x",
            22119,
            "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        ),
        (
            "tx",
            148025,
            "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        ),
        (
            "allx",
            257305,
            "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        ),
        ("y", 4054, "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"),
        (
            "ty",
            28135,
            "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        ),
        (
            "ally",
            47959,
            "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        ),
        (
            "graph",
            59847,
            "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        ),
        (
            "test.index",
            5000,
            "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
        ),
    ),
    "citeseer": (
        (
            "x",
            31087,
            "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
        ),
        (
            "tx",
            260321,
            "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        ),
        (
            "allx",
            595021,
            "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        ),
        ("y", 3014, "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924"),
        (
            "ty",
            24135,
            "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        ),
        (
            "ally",
            55623,
            "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        ),
        (
            "graph",
            61987,
            "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        ),
        (
            "test.index",
            5000,
            "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
        ),
    ),
    "pubmed": (
        (
            "x",
            23172,
            "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
        ),
        (
            "tx",
            405505,
            "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        ),
        (
            "allx",
            7578385,
            "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        ),
        ("y", 854, "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3"),
        (
            "ty",
            12135,
            "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        ),
        (
            "ally",
            224739,
            "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        ),
        (
            "graph",
            471808,
            "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        ),
        (
            "test.index",
            6000,
            "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
        ),
    ),
}

_ACTOR_KNOWN = (
    (
        "new_data/film",
        "out1_node_feature_label.txt",
        207718,
        "1d5cdd094f8b91e770f6decfca85b35cf42f75d1efb51055fd6af16e11820ff8",
    ),
    (
        "new_data/film",
        "out1_graph_edges.txt",
        323820,
        "997cdce67ea9c29257d3ffe796328391931901cf823830affa453178b60e2c3e",
    ),
    (
        "splits",
        "film_split_0.6_0.2_0.npz",
        4214,
        "4505a41d4e90abd94d1ec22571ce528b09ad7cf20d87f764aebd4177590767f5",
    ),
    (
        "splits",
        "film_split_0.6_0.2_1.npz",
        4231,
        "1871b0d24e3977c41e378fd24acc8025b63f86b77739be77a5b558d1287f207d",
    ),
    (
        "splits",
        "film_split_0.6_0.2_2.npz",
        4224,
        "d26680e911ef3ecc9fc2a26d90c9d35028c63aadd7a5aea774649d1496c282cb",
    ),
    (
        "splits",
        "film_split_0.6_0.2_3.npz",
        4207,
        "6755ad5f6a0be8594b344af3d2261eed935b83b73c4d70136e1a7beea7f78cb0",
    ),
    (
        "splits",
        "film_split_0.6_0.2_4.npz",
        4233,
        "328fdca62b25074f21f2922518e042f24b3b8a1fc378f9dfb2cae36439aed902",
    ),
    (
        "splits",
        "film_split_0.6_0.2_5.npz",
        4224,
        "5b3161a8dc8de4b2e651ebd56d68e768d1377044895b325566117fe26ab81cb7",
    ),
    (
        "splits",
        "film_split_0.6_0.2_6.npz",
        4221,
        "e251b38abd4d7931b5e9ae5aba99dcdf87f0be283bdf6e65421274a1c9ef1df6",
    ),
    (
        "splits",
        "film_split_0.6_0.2_7.npz",
        4205,
        "12164ef9f5620a2f12a387f4f2b8636859d42201101d6d32829ade62d5a98326",
    ),
    (
        "splits",
        "film_split_0.6_0.2_8.npz",
        4217,
        "405cd1f7f631f678119f8bf2405809e86614d532985beb59566fcf95abd35b3f",
    ),
    (
        "splits",
        "film_split_0.6_0.2_9.npz",
        4208,
        "505691c5d41bb37b20d085415dcdde2e8e68b5bc4e1feb2c0e361308002012bb",
    ),
)

PLANETOID_FILES = {
    graph: tuple(
        RemoteFile(
            name=f"ind.{graph}.{part}",
            url=f"{_PLANETOID}/ind.{graph}.{part}",
            size=size,
            sha256=sha256,
        )
        for part, size, sha256 in known
    )
    for graph, known in _PLANETOID_KNOWN.items()
}

ACTOR_FILES = tuple(
    RemoteFile(name=name, url=f"{_GEOM_GCN}/{folder}/{name}", size=size, sha256=sha256)
    for folder, name, size, sha256 in _ACTOR_KNOWN
)

_MAGNN_MEMBERS = (
    "adjM.npz",
    "features_0.npz",
    "features_1.npz",
    "labels.npy",
    "node_types.npy",
    "train_val_test_idx.npz",
)
MAGNN_FILES = {
    "dblp": (
        RemoteFile(
            name="DBLP_processed.zip",
            url="https://www.dropbox.com/s/yh4grpeks87ugr2/DBLP_processed.zip?dl=1",
            members=(*_MAGNN_MEMBERS, "features_2.npy"),
        ),
    ),
    "imdb": (
        RemoteFile(
            name="IMDB_processed.zip",
            url="https://www.dropbox.com/s/g0btk9ctr1es39x/IMDB_processed.zip?dl=1",
            members=(*_MAGNN_MEMBERS, "features_2.npz"),
        ),
    ),
}

_OGB_HOMOGENEOUS = (
    "raw/edge.csv.gz",
    "raw/node-feat.csv.gz",
    "raw/node-label.csv.gz",
    "raw/num-node-list.csv.gz",
)
_MAG_RELATIONS = (
    "author___affiliated_with___institution",
    "author___writes___paper",
    "paper___cites___paper",
    "paper___has_topic___field_of_study",
)
_OGB_MEMBERS = {
    "arxiv": (
        *_OGB_HOMOGENEOUS,
        *(f"split/time/{part}.csv.gz" for part in ("train", "valid", "test")),
    ),
    "products": (
        *_OGB_HOMOGENEOUS,
        *(f"split/sales_ranking/{part}.csv.gz" for part in ("train", "valid", "test")),
    ),
    "mag": (
        "raw/num-node-dict.csv.gz",
        "raw/node-feat/paper/node-feat.csv.gz",
        "raw/node-feat/paper/node_year.csv.gz",
        "raw/node-label/paper/node-label.csv.gz",
        *(f"raw/relations/{relation}/edge.csv.gz" for relation in _MAG_RELATIONS),
        *(f"split/time/paper/{part}.csv.gz" for part in ("train", "valid", "test")),
    ),
}


def ogb_archive(graph: str) -> RemoteFile:
    """The raw archive of an OGB node-property dataset."""
    return RemoteFile(
        name=f"{graph}.zip", url=f"{_OGB}/{graph}.zip", members=_OGB_MEMBERS[graph]
    )


def h2gb_file(name: str) -> RemoteFile:
    """A file H2GB publishes."""
    return RemoteFile(name=name, url=f"{_H2GB}/{name}")
