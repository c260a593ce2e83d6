"""A graph and a recipe so small that a comparison takes a moment."""

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tempergat.data import csbm
from tempergat.data.dataset import MASKS


def write_graph(path: Path, n: int = 60, **changes: np.ndarray) -> Path:
    """A user graph as .npz, with some arrays changed."""
    data = csbm(n=n, a=10.0, b=4.0, d=8, mu=2.0).data
    arrays = {
        name: data[name].numpy() for name in ("x", "y", "edge_index", *MASKS)
    } | changes
    np.savez(path, **arrays)
    return path


def write_graph_of_splits(path: Path, splits: int) -> Path:
    """A user graph with several splits, as columns of its masks."""
    drawn = np.random.default_rng(0).random((60, splits))
    return write_graph(
        path,
        train_mask=drawn < 0.4,
        val_mask=(drawn >= 0.4) & (drawn < 0.7),
        test_mask=drawn >= 0.7,
    )


def write_tables(folder: Path, names: list[str], feature: str = "f") -> list[str]:
    """A ring of named nodes as two CSVs; returns the words of its two classes."""
    folder.mkdir()
    words = ["<script>", "</style>&amp;"]
    rows = [f"{name},{n % 5},{n % 3},{words[n % 2]}" for n, name in enumerate(names)]
    (folder / "nodes.csv").write_text("\n".join([f"id,{feature},g,label", *rows]))
    pairs = [f"{a},{b}" for a, b in zip(names, names[1:] + names[:1], strict=True)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *pairs]))
    return words


def write_recipe(path: Path, **changes: Any) -> Path:
    """A recipe with short runs, some settings changed for all methods."""
    shared = {
        "epochs": 8,
        "num_layers": 2,
        "hidden_channels": 8,
        "act": "elu",
        "norm": None,
        "residual": False,
        "jk": None,
        "feature_dropout": 0.2,
        "learning_rate": 0.01,
        "weight_decay": 0.0005,
        "decay_bias": True,
        "normalize_features": False,
        "selection": "best_val_accuracy",
    } | changes
    attention = shared | {
        "heads": 2,
        "out_heads": 1,
        "attention_dropout": 0.2,
        "decay_temperature": False,
        "decay_gate": True,
        "gate_penalty": 0.0001,
        "init_temp": 1.0,
        "gate_bias_init": 0.0,
    }
    recipe = {
        "dataset": None,
        "runs": 4,
        "metric": "accuracy",
        "training": "full",
        "attention": attention,
        "gcn": shared,
    }
    path.write_text(yaml.safe_dump(recipe))
    return path
