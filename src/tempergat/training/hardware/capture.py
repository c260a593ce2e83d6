"""CUDA graphs: repeat the work of one epoch without launching each kernel again."""

from __future__ import annotations

from collections.abc import Callable

import torch

# A CUDA graph is captured from a function that has already run a few times, so that
# one-time set-up is not part of the graph.
_WARM_UP_CALLS = 3
# After so many epochs a training has been captured.
EPOCHS_TO_CAPTURE = _WARM_UP_CALLS + 1
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
