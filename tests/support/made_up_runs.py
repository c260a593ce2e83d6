"""Made-up runs for tests of storing and reporting."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tempergat.training import Condition, LayerRecord, Run, Scores

METHODS = (
    "gcn",
    "gat",
    "gatv2",
    "gated",
    "temp_only",
    "temp_gated",
    "gated_temp",
    "gated_v2",
    "temp_only_v2",
    "temp_gated_v2",
    "gated_temp_v2",
)


def run(
    method: str = "gat",
    seed: int = 0,
    test: float = 0.8,
    dataset: str = "cora",
    config: dict[str, Any] | None = None,
    **fields: Any,
) -> Run:
    scores = {
        "best_val_accuracy": Scores(epoch=30, train=1.0, val=0.79, test=test),
        "last_epoch": Scores(epoch=399, train=1.0, val=0.78, test=test - 0.01),
        "best_val_loss": Scores(epoch=90, train=0.99, val=0.785, test=test - 0.005),
    }
    values: dict[str, Any] = {
        "dataset": dataset,
        "fingerprint": f"print-of-{dataset}",
        "method": method,
        "seed": seed,
        "config": {"learning_rate": 0.005} if config is None else config,
        "scores": scores,
        "selected": LayerRecord((0.5, 0.75), (0.25,)),
        "last": LayerRecord((0.25, 0.5), (0.125,)),
        "time_s": 1.5,
        "memory_bytes": 1 << 20,
        "versions": {"torch": "2.13"},
        "device": "cpu",
    }
    return Run(**(values | fields))


def failed_run(method: str = "gat", seed: int = 0, **fields: Any) -> Run:
    failure = {
        "scores": {},
        "status": "failed",
        "failed_epoch": 17,
        "reason": "loss is not a number",
    }
    return run(method, seed, **(failure | fields))


def full_run(**fields: Any) -> Run:
    """A run that has a value for every attribute that may be left out."""
    extras = {
        "condition": Condition("missing", 0.4, 1.0),
        "matmul_precision": "high",
        "numerics": 7,
        "parameter_count": 1234,
        "curves": {"loss": (1.5, 0.5), "val_loss": (1.25, 0.75)},
        "layers_at_epochs": {10: LayerRecord((0.5,), (0.25,)), 20: LayerRecord((0.4,))},
        "metrics": {"macro_f1": {"last_epoch": Scores(20, 0.5, 0.25, 0.125)}},
        "confusion": ((3, 1), (0, 4)),
        "gate_counts": ((1, 0, 3), (2, 2, 0)),
        "training_nodes": 140,
        "selected": LayerRecord((0.5,), (0.25,), (0.1,), (0.9,)),
    }
    return run(**(extras | fields))


def study(
    dataset: str, means: dict[str, float], seeds: Sequence[int], std: float = 0.01
) -> list[Run]:
    """Runs whose scores over seeds have exactly the mean asked for (in percent)."""
    runs = []
    for index, (method, mean) in enumerate(means.items()):
        noise = np.random.default_rng(index).normal(0.0, std, len(seeds))
        scores = mean / 100 + noise - noise.mean()
        runs += [
            run(method, seed, float(score), dataset)
            for seed, score in zip(seeds, scores, strict=True)
        ]
    return runs
