"""An .npz with any content is read, or refused in one short line."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tempergat.data import ReadOptions, as_dataset
from tests.data.layouts.test_npz import matrices, node_edges, plain
from tests.fuzz.harness import fuzz, run_callable, run_command
from tests.fuzz.mutations import mutated_bytes

LAYOUTS = (plain, node_edges, matrices)
DTYPES = [
    "?",
    "i1",
    "u1",
    ">i2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f2",
    "f4",
    ">f8",
    "longdouble",
    "c8",
    "U3",
    "S3",
    "O",
    "M8[s]",
    "V4",
]
NAMES = ("edge_attr", "edge_weight", "train_mask", "x", "idx", "", "a/b", "\x1b[2J")


def random_array(rng: np.random.Generator, count: int) -> np.ndarray:
    """An array of any type and of a shape that may fit the graph."""
    sizes = [0, 1, 2, 3, count, 2 * count]
    shape = tuple(int(rng.choice(sizes)) for _ in range(int(rng.integers(4))))
    dtype = np.dtype(DTYPES[int(rng.integers(len(DTYPES)))])
    values = rng.integers(-1, 4, size=shape).astype(float)
    values[rng.random(shape) < 0.05] = rng.choice([np.nan, np.inf, 1e300, 0.5])
    if dtype.kind in "iuM":
        values = np.nan_to_num(values, nan=0, posinf=9, neginf=-9).clip(-9, 120)
    with np.errstate(all="ignore"):
        return values.astype(dtype) if dtype.kind != "V" else np.zeros(shape, dtype)


def mutated_arrays(arrays: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The arrays with a few replaced, removed, added, cast, cut or changed."""
    for _ in range(int(rng.integers(1, 4))):
        if not arrays:
            break
        name = list(arrays)[int(rng.integers(len(arrays)))]
        array = np.asarray(arrays[name])
        match int(rng.integers(6)):
            case 0:
                arrays[name] = random_array(rng, 4)
            case 1:
                del arrays[name]
            case 2:
                new = NAMES[int(rng.integers(len(NAMES)))]
                arrays[new] = random_array(rng, 4)
            case 3 if array.dtype.kind in "iufb":
                with np.errstate(all="ignore"):
                    arrays[name] = array.astype(DTYPES[int(rng.integers(11))])
            case 4:
                arrays[name] = array[: int(rng.integers(9))] if array.ndim else array
            case _ if array.size and array.dtype.kind in "iuf":
                array = array.copy()
                at = int(rng.integers(array.size))
                array.flat[at] = rng.choice([0, 1, 3, 4, 100])
                arrays[name] = array
    return arrays


def saved(arrays: dict[str, Any], rng: np.random.Generator) -> bytes:
    stream = io.BytesIO()
    save = np.savez_compressed if rng.integers(2) else np.savez
    save(stream, **arrays)
    return stream.getvalue()


@pytest.mark.slow
def test_an_npz_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"

    def attempt(rng: np.random.Generator) -> bool:
        arrays = LAYOUTS[int(rng.integers(len(LAYOUTS)))]()
        if rng.integers(2):
            content = saved(mutated_arrays(arrays, rng), rng)
        else:
            content = mutated_bytes(saved(arrays, rng), rng, most=1)
        path.write_bytes(content)
        run_command("data", "check", path)
        options = ReadOptions()
        if rng.integers(2):
            options = ReadOptions(edge_weight="edge_weight", directed=False)
        labelled = bool(rng.integers(4))
        return run_callable(as_dataset, path, labelled=labelled, options=options)

    tally = fuzz(400, attempt)
    assert min(tally[True], tally[False]) > 20, tally
