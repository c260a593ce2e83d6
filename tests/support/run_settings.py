"""Small settings and graphs that the tests of training share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tempergat.data import Dataset, csbm
from tempergat.training.groups import make_loop
from tempergat.training.loop import Loop
from tempergat.training.record import Run
from tempergat.training.settings.config import RunConfig
from tempergat.training.single.training import train_model

CPU = torch.device("cpu")

DEFAULTS: dict[str, Any] = {
    "epochs": 50,
    "num_layers": 2,
    "heads": 2,
    "hidden_channels": 8,
    "act": "elu",
    "norm": None,
    "residual": False,
    "jk": None,
    "feature_dropout": 0.0,
    "attention_dropout": 0.0,
    "learning_rate": 0.01,
    "weight_decay": 5e-4,
    "decay_bias": True,
    "gate_penalty": 1e-2,
    "normalize_features": False,
    "selection": "best_val_accuracy",
}


def config(method: str = "gat", **changes: Any) -> RunConfig:
    return RunConfig(method=method, **{**DEFAULTS, **changes})


def small_graph(n: int = 60, **options: Any) -> Dataset:
    return csbm(**{"n": n, "a": 6, "b": 2, "d": 12, "classes": 3, **options})


def loop_of(
    settings: RunConfig,
    seeds: Sequence[int] = (0,),
    graph: Dataset | None = None,
    device: torch.device = CPU,
    **options: Any,
) -> Loop:
    """A training before its first epoch, on `small_graph` unless given another."""
    graph = small_graph() if graph is None else graph
    return make_loop(graph, settings, seeds, device, **options)


def trained_loop(*arguments: Any, **options: Any) -> Loop:
    """A training after its last epoch; arguments as of `loop_of`."""
    loop = loop_of(*arguments, **options)
    loop.run()
    return loop


def train_run(
    settings: RunConfig,
    folder: Path | None,
    graph: Dataset | None = None,
    seed: int = 0,
    **options: Any,
) -> Run:
    """Trains one run with a checkpoint, on `small_graph` unless given another."""
    graph = small_graph() if graph is None else graph
    return train_model(graph, settings, seed, CPU, folder, **options).run
