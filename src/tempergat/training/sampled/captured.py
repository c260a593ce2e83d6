"""Steps of sampled training as a CUDA graph: sampling, features, model and update.

The kernels of a step take less time than launching them does. So the whole step is
recorded once, with arrays a little larger than the batches of the first steps, and
replayed for the others. The host looks now and then whether a batch did not fit. Then
it does that step without the CUDA graph, and goes on behind it: nothing is lost.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch

from tempergat.nn import BACKBONES, METHODS
from tempergat.ops import gpu_sampling
from tempergat.training.hardware.capture import capture_work
from tempergat.training.sampled.padded import PaddedStep, Room
from tempergat.training.sampled.task import SampledTask

if TYPE_CHECKING:
    from tempergat.training.sampled.loop import SampledTraining

# Plain steps whose batches show how much room is needed, and the room beyond that.
_WARM_UP_STEPS = 8
_MARGIN = 0.01
_LEAST_MARGIN = 64
# Replays between two looks at the device.
_UNSEEN_STEPS = 64
# After so many batches that did not fit, a step with more room is recorded.
_MOST_MISFITS = 3
# Below this many steps, recording costs more time than it saves.
_FEWEST_STEPS = 64
# Larger batches are not sampled without reading their size.
_MOST_EDGES = 1 << 24


def refusal(training: SampledTraining) -> str | None:
    """Why the steps cannot be recorded; None when they can."""
    group, config = training.group, training.config
    task, sampler = group.task, training.sampler
    if task.device.type != "cuda" or gpu_sampling(task.device) is None:
        return "the GPU kernels do not run here"
    if task.node_types is not None:
        return "the node types are put together batch by batch"
    if not isinstance(task, SampledTask):
        return "the graph has types"
    if task.topology.device.type != "cuda" or not task.features.is_on_gpu:
        return "edges or features are not on the GPU"
    if config.source_hash is not None:
        return "a module of a user may read values back"
    if not BACKBONES[METHODS[config.method].backbone].has_attention:
        return f"layers of {config.method} count the edges of all nodes"
    if config.norm not in (None, "batch"):
        return f"{config.norm} would see the rows that no batch uses"
    if task.edge_inputs:
        return "edge features are gathered batch by batch"
    if sampler.world_size > 1:
        return "gradients are exchanged between processes"
    edges = list(accumulate(sampler.fanout, lambda a, b: a * b, initial=1))
    if min(sampler.fanout) < 0 or sum(edges) * sampler.batch_size > _MOST_EDGES:
        return "the largest batch is too large"
    if config.epochs * len(sampler) < _FEWEST_STEPS:
        return "there are too few steps"
    return None


class CapturedSteps:
    """Does the steps of epochs, most of them as a CUDA graph.

    Args:
        training: What is trained; its settings allow this (`refusal`).

    Attributes:
        misfits: How many batches did not fit so far.
    """

    def __init__(self, training: SampledTraining) -> None:
        self._training = training
        self._nodes: list[int] = []
        self._edges: list[int] = []
        self._seen = 0
        self._step: PaddedStep | None = None
        self._graph: Any = None
        self.misfits = 0

    def finish_epoch(self) -> None:
        """Does the steps that are left of the current epoch."""
        training = self._training
        steps = len(training.sampler)
        if self._step is not None:
            self._step.begin_epoch()
        while training.steps_done < steps:
            if self._seen < _WARM_UP_STEPS:
                self._plain_step()
            else:
                if self._step is None:
                    self._record()
                self._replay(min(_UNSEEN_STEPS, steps - training.steps_done))
            if training.on_step is not None:
                training.on_step()

    def _plain_step(self) -> None:
        """A step without the CUDA graph; remembers how large its batch was."""
        training = self._training
        batch = training.sampler.batch(training.epochs_done, training.steps_done)
        nodes = list(accumulate(batch.num_sampled_nodes))
        edges = list(accumulate(batch.num_sampled_edges))
        self._nodes = [max(x) for x in zip(nodes, self._nodes or nodes, strict=True)]
        self._edges = [max(x) for x in zip(edges, self._edges or edges, strict=True)]
        self._seen += 1
        training.train_on(batch)

    def _record(self) -> None:
        """Records a step with room for all batches so far."""
        training = self._training
        device = training.group.task.device
        nodes = tuple(map(_with_margin, self._nodes[1:]))
        edges = tuple(map(_with_margin, self._edges))
        room = Room((training.sampler.batch_size, *nodes), edges)
        step = PaddedStep(training, gpu_sampling(device), room)
        step.begin_epoch()
        stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(device):
            # Compiles the kernels. A step that does not fit changes nothing.
            step.misfit.fill_(1.0)
            stream.wait_stream(torch.cuda.current_stream(device))
            with torch.cuda.stream(stream):
                for _ in range(2):
                    step.run()
            torch.cuda.current_stream(device).wait_stream(stream)
            training.optimizer.zero_grad()
            capture_work(graph, step.run, stream)
            training.optimizer.zero_grad()
            step.misfit.zero_()
        self._step, self._graph = step, graph

    def _replay(self, count: int) -> None:
        """Up to so many steps: fewer if a batch does not fit."""
        training, step = self._training, self._step
        assert step is not None
        with torch.cuda.device(training.group.task.device):
            for _ in range(count):
                self._graph.replay()
        # The only time that the host waits for the device.
        done, misfit = torch.stack([step.step.double(), step.misfit.double()]).tolist()
        training.steps_done = int(done)
        if misfit:
            self.misfits += 1
            self._plain_step()
            step.misfit.zero_()
            step.step.fill_(training.steps_done)
            if self.misfits % _MOST_MISFITS == 0:
                self._step = self._graph = None


def _with_margin(count: int) -> int:
    room = count + max(_LEAST_MARGIN, int(_MARGIN * count))
    return -(-room // 64) * 64
