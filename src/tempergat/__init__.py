"""Graph attention with a learnable softmax temperature and feature gates."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tempergat.base import UserError
    from tempergat.data import ReadOptions, load
    from tempergat.nn import (
        TemperGATConv,
        TemperGATv2Conv,
        attention,
        from_dgl,
        gate_penalty,
        upgrade,
    )
    from tempergat.ops import Graph
    from tempergat.sampling import NeighborSampler
    from tempergat.study import Comparison, Comparisons, compare, draw_node, merge
    from tempergat.training import (
        TrainedModel,
        from_pretrained,
        load_model,
        predict,
        train,
    )
    from tempergat.training.estimator import GraphClassifier

__all__ = [
    "Comparison",
    "Comparisons",
    "Graph",
    "GraphClassifier",
    "NeighborSampler",
    "ReadOptions",
    "TemperGATConv",
    "TemperGATv2Conv",
    "TrainedModel",
    "UserError",
    "__version__",
    "attention",
    "compare",
    "draw_node",
    "from_dgl",
    "from_pretrained",
    "gate_penalty",
    "load",
    "load_model",
    "merge",
    "predict",
    "train",
    "upgrade",
]
__version__ = "0.2.0"

# Names are imported on first use: the command answers --help, and chooses how threads
# wait, before torch is loaded.
_MODULES = {
    "Comparison": "study",
    "Comparisons": "study",
    "Graph": "ops",
    "GraphClassifier": "training.estimator",
    "NeighborSampler": "sampling",
    "ReadOptions": "data",
    "TemperGATConv": "nn",
    "TemperGATv2Conv": "nn",
    "TrainedModel": "training",
    "UserError": "base.errors",
    "attention": "nn",
    "compare": "study",
    "draw_node": "study",
    "from_dgl": "nn",
    "from_pretrained": "training",
    "gate_penalty": "nn",
    "load": "data",
    "load_model": "training",
    "merge": "study",
    "predict": "training",
    "train": "training",
    "upgrade": "nn",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
