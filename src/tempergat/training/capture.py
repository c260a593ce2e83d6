"""Repeating device work without the host's part of it."""

from __future__ import annotations

from collections.abc import Callable

import torch

# A CUDA graph is recorded from a function that has already run a few times, so that
# what it sets up at first is not part of the recording.
_WARM_UP = 3
# Below this many calls, recording costs more than it saves.
_WORTH_IT = 20


def replayed(
    function: Callable[[], None], device: torch.device, times: int
) -> Callable[[], None]:
    """A function to call in the place of `function`, `times` times in a row.

    On a CUDA device the first calls run as they are, then one is recorded as a CUDA
    graph, and this and all later calls replay it.

    Args:
        function: Works on tensors that stay in place, and never reads one back.
        device: Where it works.
        times: How often it will be called.
    """
    if device.type != "cuda" or times < _WORTH_IT:
        return function
    stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    graph = torch.cuda.CUDAGraph()
    calls = 0

    def call() -> None:
        nonlocal calls
        if calls < _WARM_UP:
            stream.wait_stream(torch.cuda.current_stream(device))
            with torch.cuda.stream(stream):
                function()
            torch.cuda.current_stream(device).wait_stream(stream)
        else:
            if calls == _WARM_UP:
                with torch.cuda.graph(graph):
                    function()
            graph.replay()
        calls += 1

    return call
