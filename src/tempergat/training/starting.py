"""Makes the training of some runs ready to begin."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch

from tempergat.data import Dataset
from tempergat.training.loop import EpochLoop, Training
from tempergat.training.preparation import Preparation
from tempergat.training.sampled.group import SampledGroup
from tempergat.training.sampled.loop import SampledTraining
from tempergat.training.sampled.task import sampled_task_of
from tempergat.training.sampled.typed import TypedSampledGroup, typed_task_of
from tempergat.training.settings.config import RunConfig
from tempergat.training.task import refuse_other_training, task_of
from tempergat.training.user_methods.user_code import BuildModule
from tempergat.training.user_methods.user_modules import make_group

# Groups may be trained in several threads, but only one is prepared at a time: weights
# are drawn from torch's generator, which all threads share.
one_at_a_time = threading.Lock()


def start_training(
    dataset: Dataset,
    config: RunConfig,
    seeds: Sequence[int],
    device: torch.device,
    *,
    build: BuildModule | None = None,
    preparation: Preparation | None = None,
) -> EpochLoop:
    """The training of some runs before its first epoch.

    Args:
        dataset: The graph.
        config: The settings; they say whether a step sees the whole graph.
        seeds: The seeds; a single one for sampled training.
        device: Where to train.
        build: Builds a user's own module; None for the built-in methods.
        preparation: What is done to features and model before; None for nothing.

    Raises:
        UserError: Nothing can be trained with these arguments.
    """
    if preparation is not None:
        preparation.refuse_other_training(dataset, config)
    if config.training == "full":
        task = task_of(dataset, config, device)
        group = make_group(task, config, seeds, build=build, preparation=preparation)
        return Training(group, config)
    refuse_other_training(dataset, config)
    (seed,) = seeds
    if dataset.is_heterogeneous:
        typed = typed_task_of(dataset, config, device)
        return SampledTraining(TypedSampledGroup(typed, config, seed), config)
    sampled = sampled_task_of(dataset, config, device)
    return SampledTraining(SampledGroup(sampled, config, seed, build), config)
