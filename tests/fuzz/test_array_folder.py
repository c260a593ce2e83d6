"""A folder of .npy files with any content is read, or refused in one short line."""

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tempergat.data import MASKS, Dataset, as_dataset
from tempergat.training import refuse_untrainable
from tests.fuzz.harness import Failed, fuzz, run_callable, run_command
from tests.fuzz.mutations import VALUES, mutate_arrays, mutated_bytes, pick

COUNT = 12
NAMES = ("edge_attr", "train_idx", "split", "a b", "\x1b[2J", *MASKS)
NUMBERS = (-7, -1, 0, 1, 2, 3, 11, 12, 2000, 2**31, 2**63 - 1, 0.5, 1e300, np.nan)


def arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A sound graph; its masks are missing, or have one split or two."""
    ends = np.stack([np.arange(COUNT), np.roll(np.arange(COUNT), 1)])
    found = {
        "edge_index": ends.astype(np.int32),
        "x": rng.standard_normal((COUNT, 3)).astype(np.float32),
        "y": np.arange(COUNT) % 3,
    }
    parts = np.arange(COUNT) // 3 % 3
    if form := int(rng.integers(3)):
        for at, name in enumerate(MASKS):
            mask = parts == at
            found[name] = mask if form == 1 else np.stack([mask, mask[::-1]], axis=1)
    return found


def write(folder: Path, rng: np.random.Generator) -> None:
    """Writes a folder of which the arrays or the bytes of a file are changed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    found = arrays(rng)
    by_array = bool(rng.integers(3))
    if by_array:
        mutate_arrays(found, rng, COUNT, NAMES, NUMBERS)
    damaged = None if by_array else pick(rng, list(found))
    for name, array in found.items():
        stream = io.BytesIO()
        np.save(stream, array)
        content = stream.getvalue()
        if name == damaged:
            # Of a small file the header is the larger part.
            content = mutated_bytes(content, rng, most=2)
        (folder / f"{name}.npy").write_bytes(content)
    if not rng.integers(8):
        (folder / "tempergat.json").write_text(str(pick(rng, VALUES)))


def require_possible(graph: Dataset) -> None:
    """Fails on a graph that no reader may return."""
    data: Any = graph.data
    nodes = data.num_nodes
    ends, labels = data.edge_index, data.y
    masks = torch.stack([data[name] for name in MASKS])
    possible = {
        "edges": ends.numel() == 0 or (ends.min() >= 0 and ends.max() < nodes),
        "features": data.x.shape[0] == nodes and torch.isfinite(data.x.float()).all(),
        "labels": labels.shape == (nodes,)
        and labels.min() >= -1
        and set(labels[labels >= 0].tolist()) == set(range(graph.predicted.width)),
        "masks": masks.shape == (3, nodes) and masks.dtype == torch.bool,
        "split": (masks.sum(0) <= 1).all() and masks[0].any(),
        "labels in the split": (labels[masks.any(0)] >= 0).all(),
    }
    for what, holds in possible.items():
        if not holds:
            raise Failed(f"accepted impossible {what}: {graph}")


def try_folder(folder: Path) -> bool:
    """Checks and reads a folder; returns whether it was read."""
    checked = run_command("data", "check", folder)
    run_callable(as_dataset, folder, labelled=False)
    read = run_callable(lambda: require_possible(as_dataset(folder)))
    # What cannot be trained on can be read all the same, and looked at.
    trains = read and run_callable(lambda: refuse_untrainable(as_dataset(folder)))
    # A check looks at all splits, and reading at the one that is used.
    if trains and checked.status and ", split 1: " not in checked.err:
        raise Failed(f"can be trained on, but its check says {checked.err!r}")
    if (folder / "y.npy").exists() and not trains and not checked.status:
        raise Failed("passes its check, but cannot be trained on")
    return read


def try_folders(folder: Path, count: int, more_than: int) -> None:
    def attempt(rng: np.random.Generator) -> bool:
        write(folder, rng)
        return try_folder(folder)

    fuzz(count, attempt, more_than)


@pytest.mark.parametrize("name", ["val_mask", "y", "x"])
def test_a_graph_that_cannot_be_trained_on_is_read(name: str, tmp_path: Path) -> None:
    masks = {mask: np.arange(COUNT) // 3 % 3 == at for at, mask in enumerate(MASKS)}
    content = {**arrays(np.random.default_rng(0)), **masks}
    # No validation nodes, one class, no features.
    content[name] = content[name][:, :0] if name == "x" else 0 * content[name]
    for stem, array in content.items():
        np.save(tmp_path / f"{stem}.npy", array.astype(masks.get(stem, array).dtype))
    assert try_folder(tmp_path)


def test_some_folders_of_arrays_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    try_folders(tmp_path / "graph", 40, more_than=5)


@pytest.mark.slow
def test_a_folder_of_arrays_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    try_folders(tmp_path / "graph", 500, more_than=100)
