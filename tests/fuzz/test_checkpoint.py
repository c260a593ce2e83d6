"""A checkpoint with any content is used, or refused in one short line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tempergat.training import CHECKPOINT_NAME, predict
from tempergat.training.single.checkpoint import Checkpoint, read, write
from tests.fuzz.harness import fuzz, run_callable
from tests.fuzz.mutations import mutated_bytes, mutated_value
from tests.support.run_settings import config, small_graph, train_run

CPU = torch.device("cpu")


@pytest.mark.slow
def test_a_checkpoint_is_used_or_refused_in_one_line(tmp_path: Path) -> None:
    graph, settings = small_graph(20, d=4), config("temp_gated", epochs=2)
    train_run(settings, tmp_path, graph=graph)
    path = tmp_path / CHECKPOINT_NAME
    content, saved = path.read_bytes(), read(path)

    def attempt(rng: np.random.Generator) -> bool:
        kind = int(rng.integers(4))
        if kind == 0:
            path.write_bytes(mutated_bytes(content, rng))
        elif kind == 1:
            write(path, saved.tensors, mutated_value(saved.metadata, rng, most=2))
        elif kind == 2:
            write(path, _other_tensors(saved, rng), saved.metadata)
        else:
            facts = mutated_value(saved.metadata, rng, most=1)
            write(path, _other_tensors(saved, rng), facts)
        if rng.integers(2):
            return run_callable(predict, path, graph, CPU)
        return run_callable(train_run, settings, tmp_path, graph=graph)

    fuzz(350, attempt, more_than=20)


def _other_tensors(
    saved: Checkpoint, rng: np.random.Generator
) -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint with one missing, of another kind, or changed."""
    tensors: dict[str, Any] = dict(saved.tensors)
    # Those that count epochs decide what is done with the others.
    names = ["epoch", "failed_epoch", "history"] if rng.integers(2) else list(tensors)
    name = str(rng.choice(names))
    value = tensors[name]
    match int(rng.integers(6)):
        case 0:
            del tensors[name]
        case 1:
            tensors[name] = value.reshape(*value.shape, 1)
        case 2:
            tensors[name] = value.to(torch.float16)
        case 3:
            tensors[name] = torch.full_like(value, int(rng.integers(-5, 5)))
        case 4:
            extreme = (
                [2**62, -(2**62)] if value.dtype == torch.int64 else [np.nan, 1e38]
            )
            tensors[name] = torch.full_like(value, extreme[int(rng.integers(2))])
        case _:
            tensors[f"{name}.more"] = value.clone()
    return tensors
