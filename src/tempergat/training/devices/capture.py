"""Work as a CUDA graph: epochs on the whole graph, and steps on samples.

The kernels of a step take less time than launching them does. On the whole graph, an
epoch is captured once and replayed. On samples, a step is captured with arrays a little
larger than the batches of the first steps: sampling, features, model and update. The
host looks now and then whether a batch did not fit. Then it does that step without the
CUDA graph, and goes on after it: nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch

from tempergat.nn import BACKBONES, METHODS
from tempergat.ops import gpu_sampling
from tempergat.training.devices.padded_step import PaddedStep

if TYPE_CHECKING:
    from tempergat.training.loop import Loop

# A CUDA graph is captured from a function that has already run a few times, so that
# one-time set-up is not part of the graph.
_WARM_UP_CALLS = 3
# After so many epochs a training has been captured.
EPOCHS_TO_CAPTURE = _WARM_UP_CALLS + 1
# Below this many calls, capturing costs more time than it saves.
_FEWEST_CALLS = 20

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


def replayed(
    function: Callable[[], None], device: torch.device, times: int
) -> Callable[[], None]:
    """Returns a function to call `times` times in place of `function`.

    On a CUDA device the first calls run as they are. Then one call is captured as a
    CUDA graph, and it and all later calls replay the graph. Whatever device is current,
    the work is done on `device`.

    Args:
        function: Works on tensors that stay in place, and never reads one back.
        device: Where it works.
        times: How often it will be called.
    """
    if device.type != "cuda":
        return function
    captures = times >= _FEWEST_CALLS
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    graph = torch.cuda.CUDAGraph()
    calls = 0

    def call() -> None:
        nonlocal calls
        # Kernels are launched, and graphs captured, on the current device.
        with torch.cuda.device(device):
            if not captures:
                function()
            elif calls < _WARM_UP_CALLS:
                stream.wait_stream(torch.cuda.current_stream(device))
                with torch.cuda.stream(stream):
                    function()
                torch.cuda.current_stream(device).wait_stream(stream)
            else:
                if calls == _WARM_UP_CALLS:
                    capture_work(graph, function, stream)
                graph.replay()
        calls += 1

    return call


def capture_work(
    graph: torch.cuda.CUDAGraph, function: Callable[[], None], stream: torch.cuda.Stream
) -> None:
    """Captures the work of a function.

    Unlike `torch.cuda.graph`, this does not wait for the work of other streams, where
    other groups may be training; and other threads may use the device meanwhile.
    """
    device = stream.device
    torch.cuda.current_stream(device).synchronize()
    free, total = torch.cuda.mem_get_info(device)
    if free < total // 2:
        # The graph does not use memory that torch keeps from the calls before.
        torch.cuda.empty_cache()
    with torch.cuda.stream(stream):
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            function()
        finally:
            graph.capture_end()


def refusal(loop: Loop) -> str | None:
    """Why the steps of an epoch cannot be captured; None when they can."""
    batches, config = loop.batches, loop.config
    if batches.is_whole:
        return "the epoch is captured"
    device, graph, sampler = loop.device, batches.graph, batches.sampler
    if device.type != "cuda" or gpu_sampling(device) is None:
        return "the GPU kernels do not run here"
    if graph.target is not None:
        return "the node types are put together batch by batch"
    if graph.topology.device.type != "cuda" or not graph.features.is_on_gpu:
        return "edges or features are not on the GPU"
    if config.source_hash is not None:
        return "a module of a user may read values back"
    if not BACKBONES[METHODS[config.method].backbone].has_attention:
        return f"layers of {config.method} count the edges of all nodes"
    if config.norm not in (None, "batch"):
        return f"{config.norm} would see the rows that no batch uses"
    if graph.edge_inputs:
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
        loop: What is trained; its settings allow this (`refusal`).

    Attributes:
        misfits: How many batches did not fit so far.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._nodes: list[int] = []
        self._edges: list[int] = []
        self._seen = 0
        self._step: PaddedStep | None = None
        self._graph: Any = None
        self.misfits = 0

    def finish_epoch(self) -> None:
        """Does the steps that are left of the current epoch."""
        loop = self._loop
        steps = len(loop.batches.sampler)
        if self._step is not None:
            self._step.begin_epoch()
        while loop.steps_done < steps:
            if self._seen < _WARM_UP_STEPS:
                self._plain_step()
            else:
                if self._step is None:
                    self._record()
                self._replay(min(_UNSEEN_STEPS, steps - loop.steps_done))
            if loop.on_step is not None:
                loop.on_step()

    def _plain_step(self) -> None:
        """A step without the CUDA graph; remembers how large its batch was."""
        loop = self._loop
        batch = loop.batches.sampler.batch(loop.epochs_done, loop.steps_done)
        nodes = list(accumulate(batch.num_sampled_nodes))
        edges = list(accumulate(batch.num_sampled_edges))
        self._nodes = [max(x) for x in zip(nodes, self._nodes or nodes, strict=True)]
        self._edges = [max(x) for x in zip(edges, self._edges or edges, strict=True)]
        self._seen += 1
        loop.train_on(loop.batches.batch_of(batch))

    def _record(self) -> None:
        """Records a step with room for all batches so far."""
        loop = self._loop
        device = loop.device
        nodes = (loop.batches.sampler.batch_size, *map(_with_margin, self._nodes[1:]))
        edges = tuple(map(_with_margin, self._edges))
        step = PaddedStep(loop, gpu_sampling(device), nodes, edges)
        step.begin_epoch()
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(device):
            # Compiles the kernels. A step that does not fit changes nothing.
            step.misfit.fill_(1.0)
            stream.wait_stream(torch.cuda.current_stream(device))
            with torch.cuda.stream(stream):
                for _ in range(2):
                    step.run()
            torch.cuda.current_stream(device).wait_stream(stream)
            loop.optimizer.zero_grad()
            capture_work(graph, step.run, stream)
            loop.optimizer.zero_grad()
            step.misfit.zero_()
        self._step, self._graph = step, graph

    def _replay(self, count: int) -> None:
        """Up to so many steps: fewer if a batch does not fit."""
        loop, step = self._loop, self._step
        assert step is not None
        with torch.cuda.device(loop.device):
            for _ in range(count):
                self._graph.replay()
        # The only time that the host waits for the device.
        done, misfit = torch.stack([step.step.double(), step.misfit.double()]).tolist()
        loop.steps_done = int(done)
        if misfit:
            self.misfits += 1
            self._plain_step()
            step.misfit.zero_()
            step.step.fill_(loop.steps_done)
            if self.misfits % _MOST_MISFITS == 0:
                self._step = self._graph = None


def _with_margin(count: int) -> int:
    room = count + max(_LEAST_MARGIN, int(_MARGIN * count))
    return -(-room // 64) * 64
