"""Training on sampled neighbourhoods, and exact inference layer by layer."""

from tempergat.training.sampled.group import SampledGroup
from tempergat.training.sampled.layerwise import infer_layerwise
from tempergat.training.sampled.loop import SampledTraining
from tempergat.training.sampled.task import (
    BatchInputs,
    SampledTask,
    once_per_graph,
    parts_of,
    sampled_task_of,
)
from tempergat.training.sampled.typed import (
    TypedSampledGroup,
    batch_inputs,
    typed_task_of,
)

__all__ = [
    "BatchInputs",
    "SampledGroup",
    "SampledTask",
    "SampledTraining",
    "TypedSampledGroup",
    "batch_inputs",
    "infer_layerwise",
    "once_per_graph",
    "parts_of",
    "sampled_task_of",
    "typed_task_of",
]
