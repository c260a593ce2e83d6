"""Repeating device work without the host's part of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

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
                with torch.cuda.graph(graph), _NumbersMadeOnDevice():
                    function()
            graph.replay()
        calls += 1

    return call


class _NumbersMadeOnDevice(TorchFunctionMode):
    """Numbers become tensors by a kernel: a recording cannot hold a host's copy."""

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if function is torch.as_tensor and isinstance(args[0], int | float):
            return torch.full((), args[0], **kwargs)
        return function(*args, **kwargs)
