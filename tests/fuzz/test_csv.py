"""Tables with any content are read, or refused in one short line."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from tempergat.data import ReadOptions
from tests.fuzz.harness import fuzz, read_graph, run_callable, run_command
from tests.fuzz.mutations import mutated_bytes, mutated_text, pick

NODES = "\n".join(
    ["id,height,colour,label,split"]
    + [
        f"n{at},{at / 4},{'red' if at % 3 else 'blue'},{'cat' if at % 2 else 'dog'},"
        f"{('train', 'train', 'val', 'test', '')[at % 5]}"
        for at in range(20)
    ]
)
EDGES = "\n".join(
    ["source,target,weight,kind"]
    + [f"n{at},n{(at + 1) % 20},{at / 8},{at % 3}" for at in range(20)]
)
SPLIT = "\n".join(
    ["id,split", *(f"n{at},{'train' if at % 2 else 'test'}" for at in range(20))]
)
NAMES = (
    "id", "y", "label", "index", "train_mask", "height", "a", "", "\x1b[2J", "=", "x=1",
)  # fmt: skip
OPTIONS = (
    {},
    {"one_hot": ("colour",)},
    {"features": ("height",), "directed": True},
    {"one_hot": ("colour",), "edge_features": ("kind", "weight")},
    {"features": ("height",), "edge_weight": "weight", "directed": False},
    {"features": (), "make_features": "random-walk"},
    {"features": ("height", "colour"), "missing": ("red", "n3")},
    {"label": "colour", "features": ("height",)},
    {"drop": ("colour", "kind"), "fill": "flag", "drop_unknown_edges": True},
    {"one_hot": ("colour", "kind"), "edge_features": ("kind",), "fill": "median"},
    {"source": "target", "dest": "source", "dates": "days", "drop": ("colour",)},
)


def damaged(text: str, rng: np.random.Generator) -> bytes:
    """A table with some values, its header, its separators or its bytes changed."""
    match int(rng.integers(6)):
        case 0:
            return mutated_bytes(text.encode(), rng, most=2)
        case 1:
            text = text.replace(",", pick(rng, ";\t| "))
        case 2:
            header, _, rest = text.partition("\n")
            names = header.split(",")
            names[int(rng.integers(len(names)))] = pick(rng, NAMES)
            text = ",".join(names) + "\n" + rest
        case 3:
            columns = [line.split(",") for line in text.split("\n")]
            order = rng.permutation(len(columns[0]))
            text = "\n".join(",".join(row[at] for at in order) for row in columns)
        case _:
            return mutated_text(text, rng, ",\n", most=3).encode("utf-8", "replace")
    return text.encode()


@pytest.mark.parametrize("count", [60, pytest.param(1200, marks=pytest.mark.slow)])
def test_tables_are_read_or_refused_in_one_line(tmp_path: Path, count: int) -> None:
    def attempt(rng: np.random.Generator) -> bool:
        folder = tmp_path / "graph"
        folder.mkdir(exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
        tables = {"nodes": NODES.encode(), "edges": EDGES.encode()}
        if rng.integers(8) == 0:
            tables["nodes"] = NODES.replace("split", "part").encode()
            tables["split"] = SPLIT.encode()
        for name in list(tables):
            if rng.integers(2):
                tables[name] = damaged(tables[name].decode(), rng)
        for name, content in tables.items():
            packed = rng.integers(10) == 0
            suffix = ".csv.gz" if packed else ".csv"
            content = gzip.compress(content) if packed else content
            if packed and rng.integers(2):
                content = mutated_bytes(content, rng, most=1)
            (folder / f"{name}{suffix}").write_bytes(content)
        if rng.integers(6) == 0:
            options = ("--one-hot", "colour", "--edge-weight", "weight")
            return run_command("data", "check", folder, *options).status == 0
        read_options = ReadOptions(**pick(rng, OPTIONS))
        labelled = bool(rng.integers(4))
        return run_callable(read_graph, folder, options=read_options, labelled=labelled)

    fuzz(count, attempt, more_than=count // 12)
