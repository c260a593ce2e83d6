"""An .npz with any content is read, or refused in one short line."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.layouts.test_npz import matrices, node_edges, plain
from tests.fuzz.harness import check_and_read, fuzz
from tests.fuzz.mutations import mutate_arrays, mutated_bytes, pick

LAYOUTS = (plain, node_edges, matrices)
NAMES = ("edge_attr", "edge_weight", "train_mask", "x", "idx", "", "a/b", "\x1b[2J")


def saved(arrays: dict[str, Any], rng: np.random.Generator) -> bytes:
    stream = io.BytesIO()
    save = np.savez_compressed if rng.integers(2) else np.savez
    save(stream, **arrays)
    return stream.getvalue()


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_an_npz_is_read_or_refused_in_one_line(tmp_path: Path, count: int) -> None:
    path = tmp_path / "g.npz"

    def attempt(rng: np.random.Generator) -> bool:
        arrays = pick(rng, LAYOUTS)()
        if rng.integers(2):
            mutate_arrays(arrays, rng, 4, NAMES, [0, 1, 3, 4, 100])
            content = saved(arrays, rng)
        else:
            content = mutated_bytes(saved(arrays, rng), rng, most=1)
        path.write_bytes(content)
        return check_and_read(path, rng, edge_weight="edge_weight", directed=False)

    fuzz(count, attempt, more_than=count // 20)
