"""Which backend runs a call; all ops decide it here.

A backend is a sub-package with kernels for one kind of device. It answers the protocol
below. Calls that no backend takes run in plain PyTorch: an attention by its reference,
the other ops by the same formula in torch's ops.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from torch import Tensor

from tempergat.ops import cpu, gpu
from tempergat.ops.calls import Backward, Call, Forward
from tempergat.ops.torch_internals import in_forward_mode, is_exporting


class Backend(Protocol):
    """What `ops/cpu` and `ops/gpu` offer.

    Attributes:
        NAME: Its name in `explain` and in an attention's ``backends``.
        DEVICE_TYPE: The type of the devices it serves, such as "cuda".
        DISPATCH_KEY: Torch's name of these devices, such as "CUDA".
    """

    NAME: str
    DEVICE_TYPE: str
    DISPATCH_KEY: str

    def refusal(self, call: Call) -> str | None:
        """Why it cannot run a call on its own device; None when it can.

        It may use the types and shapes of all tensors, and has no side effects.
        """

    def kernels(self, op: str) -> Any:
        """The module with an op's kernels, imported when first needed.

        For an attention: ``forward`` and ``backward``; for "dropout", "aggregate" and
        "outer": ``run``.
        """

    def attend(self, attention: str, call: Forward) -> tuple[Tensor | None, ...]:
        """Runs an attention and its epilogue.

        Returns:
            The output; attention's output before the epilogue, None where there is no
            epilogue; the log-sum-exp; the weights and the sum of the gate, None where
            they are not wanted; the attention's state.
        """

    def gradients(self, attention: str, call: Backward) -> tuple[Tensor | None, ...]:
        """The gradients of the inputs, of the gate's logit and of the bias.

        They are None for what is absent or not wanted.
        """


class Choice(NamedTuple):
    """Which backend runs a call, and why each faster one does not."""

    backend: str
    refused: dict[str, str]


# In the order in which they are tried.
BACKENDS: tuple[Backend, ...] = (gpu, cpu)


def refusal(backend: Backend, call: Call, eager: bool = False) -> str | None:
    """Why a backend does not run a call; None when it does.

    Args:
        backend: The backend.
        call: The call.
        eager: Whether the `execution_mode` is known to be "eager".
    """
    if not eager and is_exporting():
        return "an exported program holds plain PyTorch only"
    if not eager and in_forward_mode():
        return "forward-mode differentiation goes through the reference"
    first = call.tensors[0]
    assert first is not None
    device = first.device
    if device.type != backend.DEVICE_TYPE:
        return f"the features are on {device}, not on a {backend.DISPATCH_KEY} device"
    if call.graph is not None and call.graph.device != device:
        return f"the features are on {device}, the graph on {call.graph.device}"
    for tensor in call.tensors:
        if tensor is not None and tensor.device != device:
            return f"the features are on {device}, another tensor on {tensor.device}"
    if backend.NAME not in call.backends:
        return f"there are no {backend.NAME} kernels for {call.op}"
    return backend.refusal(call)


def find(call: Call, eager: bool = False) -> Backend | None:
    """The backend that runs a call; None for plain PyTorch.

    Args:
        call: The call.
        eager: Whether the `execution_mode` is known to be "eager".
    """
    first = call.tensors[0]
    assert first is not None
    place = first.device.type
    for backend in BACKENDS:
        # Checked first, because building the text of a refusal takes time.
        if place == backend.DEVICE_TYPE and refusal(backend, call, eager) is None:
            return backend
    return None


def explain(call: Call) -> Choice:
    """The same decision in words."""
    refused: dict[str, str] = {}
    for backend in BACKENDS:
        reason = refusal(backend, call)
        if reason is None:
            return Choice(backend.NAME, refused)
        refused[backend.NAME] = reason
    return Choice("reference", refused)
