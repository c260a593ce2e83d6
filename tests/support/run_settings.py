"""Small settings and graphs that the tests of training share."""

from typing import Any

from tempergat.data import Dataset, csbm
from tempergat.training.settings.config import RunConfig

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
