"""CUDA graphs: repeat the work of one epoch without launching each kernel again."""

from __future__ import annotations

from collections.abc import Callable

import torch

# A CUDA graph is captured from a function that has already run a few times, so that
# one-time set-up is not part of the graph.
_WARM_UP_CALLS = 3
# Below this many calls, capturing costs more time than it saves.
_FEWEST_CALLS = 20


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
    stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
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
                    # Other threads may compile and load kernels meanwhile.
                    with torch.cuda.graph(
                        graph, stream=stream, capture_error_mode="thread_local"
                    ):
                        function()
                graph.replay()
        calls += 1

    return call
