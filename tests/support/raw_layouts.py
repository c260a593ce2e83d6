"""Small raw files in the exact layout of those published, for graphs made up here.

The layouts are those of ogb 1.3.6, PyG, SNAP and H2GB; nothing here uses the readers.
"""

import gzip
import io
import json
import pickle
import zipfile
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse

Rows = Iterable[Sequence[object]]

# The fields of a profile of Pokec after `AGE`, as SNAP lists them.
_POKEC_FIELDS = (
    "body I_am_working_in_field spoken_languages hobbies I_most_enjoy_good_food pets "
    "body_type my_eyesight eye_color hair_color hair_type completed_level_of_education "
    "favourite_color relation_to_smoking relation_to_alcohol sign_in_zodiac "
    "on_pokec_i_am_looking_for love_is_for_me relation_to_casual_sex "
    "my_partner_should_be marital_status children relation_to_children I_like_movies "
    "I_like_watching_movie I_like_music I_mostly_like_listening_to_music "
    "the_idea_of_good_evening I_like_specialties_from_kitchen fun "
    "I_am_going_to_concerts my_active_sports my_passive_sports profession I_like_books "
    "life_style music cars politics relationships art_culture hobbies_interests "
    "science_technologies computers_internet education sport movies travelling health "
    "companies_brands more"
)
POKEC_TEXTS = _POKEC_FIELDS.split()
# Those that H2GB makes node types of.
POKEC_CLUBS = POKEC_TEXTS[POKEC_TEXTS.index("life_style") : POKEC_TEXTS.index("more")]


def csv(rows: Rows, separator: str = ",") -> bytes:
    return "".join(separator.join(map(str, row)) + "\n" for row in rows).encode()


def csv_gz(rows: Rows, separator: str = ",") -> bytes:
    return gzip.compress(csv(rows, separator), mtime=0)


def zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def column(values: Iterable[object]) -> list[tuple[object]]:
    return [(value,) for value in values]


def ogb_homogeneous(
    name: str,
    split: str,
    edges: Rows,
    features: np.ndarray,
    labels: np.ndarray,
    parts: dict[str, list[int]],
) -> bytes:
    """The archive of ogbn-arxiv or ogbn-products."""
    edges = list(edges)
    members = {
        f"{name}/RELEASE_v1.txt": b"",
        f"{name}/raw/edge.csv.gz": csv_gz(edges),
        f"{name}/raw/node-feat.csv.gz": csv_gz(features.tolist()),
        f"{name}/raw/node-label.csv.gz": csv_gz(column(labels.tolist())),
        f"{name}/raw/num-node-list.csv.gz": csv_gz([(len(labels),)]),
        f"{name}/raw/num-edge-list.csv.gz": csv_gz([(len(edges),)]),
        f"{name}/mapping/README.md": b"mapping",
    }
    for part, nodes in parts.items():
        members[f"{name}/split/{split}/{part}.csv.gz"] = csv_gz(column(nodes))
    return zipped(members)


def ogb_mag(
    counts: dict[str, int],
    relations: dict[str, Rows],
    features: np.ndarray,
    labels: np.ndarray,
    years: np.ndarray,
    parts: dict[str, list[int]],
) -> bytes:
    """The archive of ogbn-mag."""
    node = "mag/raw/node-feat/paper"
    members = {
        "mag/raw/num-node-dict.csv.gz": csv_gz([list(counts), list(counts.values())]),
        f"{node}/node-feat.csv.gz": csv_gz(features.tolist()),
        f"{node}/node_year.csv.gz": csv_gz(column(years.tolist())),
        "mag/raw/node-label/paper/node-label.csv.gz": csv_gz(column(labels.tolist())),
        "mag/raw/nodetype-has-feat.csv.gz": b"",
    }
    for relation, rows in relations.items():
        folder, edges = f"mag/raw/relations/{relation}", list(rows)
        members[f"{folder}/edge.csv.gz"] = csv_gz(edges)
        members[f"{folder}/num-edge-list.csv.gz"] = csv_gz([(len(edges),)])
    for part, nodes in parts.items():
        members[f"mag/split/time/paper/{part}.csv.gz"] = csv_gz(column(nodes))
    return zipped(members)


def reddit(
    edges: np.ndarray, features: np.ndarray, labels: np.ndarray, types: np.ndarray
) -> bytes:
    """The archive of Reddit; its graph is a scipy COO matrix."""
    nodes, graph = io.BytesIO(), io.BytesIO()
    np.savez(
        nodes,
        feature=features,
        label=labels,
        node_types=types,
        node_ids=np.arange(len(labels)),
    )
    shape = (len(labels), len(labels))
    ones = np.ones(edges.shape[1])
    scipy.sparse.save_npz(
        graph, scipy.sparse.coo_matrix((ones, tuple(edges)), shape=shape)
    )
    members = {
        "reddit_data.npz": nodes.getvalue(),
        "reddit_graph.npz": graph.getvalue(),
    }
    return zipped(members)


def pokec_profile(
    user: int,
    public: object,
    completion: object,
    gender: object,
    region: str,
    age: object,
    texts: dict[str, str],
) -> list[object]:
    """One row of the profiles: 59 fields and a tab at the end."""
    row = [user, public, completion, gender, region, "2012-05-25 11:20:00.0"]
    row += ["2005-04-03 00:00:00.0", age]
    row += [texts.get(field, "null") for field in POKEC_TEXTS]
    return [*row, ""]


def club(name: str) -> str:
    return f'<a href="/klub/{name}" title="{name}">{name}</a>'


class _Named:
    """Writes a reference to a class of another library without that library."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class _Call:
    def __init__(self, function: _Named, *arguments: object, state: object = None):
        self.function, self.arguments, self.state = function, arguments, state


class _Pickler(pickle._Pickler):  # type: ignore[name-defined,misc]
    """Pickles `_Named` as a global of its own and `_Call` as a call of one."""

    def save(self, value: object, save_persistent_id: bool = True) -> None:
        if isinstance(value, _Named):
            line = f"{value.module}\n{value.name}\n".encode()
            self.write(pickle.GLOBAL + line)
        elif isinstance(value, _Call):
            self.save(value.function)
            self.save(value.arguments)
            self.write(pickle.REDUCE)
            if value.state is not None:
                self.save(value.state)
                self.write(pickle.BUILD)
        else:
            super().save(value, save_persistent_id)


_INDEX = _Named("pandas.core.indexes.base", "Index")
_RANGE = _Named("pandas.core.indexes.range", "RangeIndex")
_NEW_INDEX = _Named("pandas.core.indexes.base", "_new_Index")
_BLOCK = _Named("pandas._libs.internals", "_unpickle_block")
_MANAGER = _Named("pandas.core.internals.managers", "BlockManager")
_FRAME = _Named("pandas.core.frame", "DataFrame")


def pandas_table(columns: dict[str, np.ndarray]) -> _Call:
    """A table as pandas pickles it: a block for the numbers, one for the objects."""
    names = np.array(list(columns), dtype=object)
    blocks = []
    for wants_objects in (False, True):
        places = [
            place
            for place, values in enumerate(columns.values())
            if (values.dtype == object) == wants_objects
        ]
        if places:
            values = np.stack([columns[names[place]] for place in places])
            where: object = np.array(places)
            if len(places) == 1:
                where = slice(places[0], places[0] + 1, 1)
            blocks.append(_Call(_BLOCK, values, where, 2))
    rows = len(next(iter(columns.values())))
    index = {"name": None, "start": 0, "stop": rows, "step": 1}
    axes = [
        _Call(_NEW_INDEX, _INDEX, {"data": names, "name": None}),
        _Call(_NEW_INDEX, _RANGE, index),
    ]
    manager = _Call(_MANAGER, tuple(blocks), axes)
    state = {"_mgr": manager, "_typ": "dataframe", "_metadata": [], "attrs": {}}
    return _Call(_FRAME, state=state)


def torch_container(content: object) -> bytes:
    """What torch.save writes for a value without tensors."""
    stream = io.BytesIO()
    _Pickler(stream, protocol=2).dump(content)
    return zipped({"graph/data.pkl": stream.getvalue(), "graph/version": b"3\n"})


def npz(**arrays: object) -> bytes:
    """An .npz file."""
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def heterophilous(
    edges: Rows, features: np.ndarray, labels: np.ndarray, masks: dict[str, np.ndarray]
) -> bytes:
    """A file of the heterophilous-graphs repository; masks have a row per split."""
    return npz(
        node_features=features,
        node_labels=labels,
        edges=np.array(list(edges)),
        **{f"{name}s": mask for name, mask in masks.items()},
    )


def webkb(
    name: str,
    edges: Rows,
    words: np.ndarray,
    labels: np.ndarray,
    masks: dict[str, np.ndarray],
) -> dict[str, bytes]:
    """The files of a WebKB graph in geom-gcn, by name."""
    values = [",".join(map(str, row)) for row in words.tolist()]
    nodes = zip(range(len(values)), values, labels.tolist(), strict=True)
    heading = ("node_id", "feature", "label")
    files = {
        "out1_node_feature_label.txt": csv([heading, *nodes], "\t"),
        "out1_graph_edges.txt": csv([("node_id", "node_id"), *edges], "\t"),
    }
    for number in range(len(masks["train_mask"])):
        chosen = {key: mask[number].astype(np.uint8) for key, mask in masks.items()}
        files[f"{name}_split_0.6_0.2_{number}.npz"] = npz(**chosen)
    return files


def wikics(
    links: list[list[int]],
    features: np.ndarray,
    labels: np.ndarray,
    masks: dict[str, np.ndarray],
) -> bytes:
    """The JSON file of WikiCS; `test_mask` has one row for all splits."""
    content = {
        "features": features.tolist(),
        "labels": labels.tolist(),
        "links": links,
        "train_masks": masks["train_mask"].tolist(),
        "val_masks": masks["val_mask"].tolist(),
        "stopping_masks": masks["val_mask"].tolist(),
        "test_mask": masks["test_mask"].tolist(),
    }
    return json.dumps(content).encode()


def attributed(
    name: str, edges: Rows, features: np.ndarray, labels: np.ndarray
) -> bytes:
    """The archive of an attributed network; classes are numbered from 1 in it."""
    matrix = io.BytesIO()
    scipy.sparse.save_npz(matrix, scipy.sparse.csr_matrix(features))
    members = {
        f"{name}.attr/attrs.npz": matrix.getvalue(),
        f"{name}.attr/edgelist.txt": csv(edges, " "),
        f"{name}.attr/labels.txt": csv(enumerate(labels + 1), " "),
    }
    return zipped(members)


def musae(
    prefix: str,
    edges: Rows,
    words: dict[int, list[int]],
    columns: Sequence[str],
    rows: Rows,
    words_end: str = "_features",
) -> dict[str, bytes]:
    """The three files of a MUSAE graph, by their names in the archive."""
    return {
        f"{prefix}_edges.csv": csv([("id_1", "id_2"), *edges]),
        f"{prefix}{words_end}.json": json.dumps(words).encode(),
        f"{prefix}_target.csv": csv([columns, *rows]),
    }
