"""The device to train on: its choice and its name."""

import torch

from tempergat.base import UserError


def choose_device(name: str | torch.device, argument: str = "device") -> torch.device:
    """Turn a device's name into a device that exists.

    Args:
        name: `auto`, `cpu`, `cuda` or `cuda:1`; `auto` is the first CUDA device, or
            the CPU where there is none.
        argument: Name of the argument in error messages.

    Raises:
        UserError: The name is not one of these, or torch does not see the device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise UserError(f"{argument} is {str(name)!r}; choose auto, cpu or cuda")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"{argument} is {str(name)!r}, but torch {torch.__version__} sees "
            f"{torch.cuda.device_count()} CUDA devices; choose cpu, or see "
            "`tempergat doctor`"
        )
    return device


def device_name(device: torch.device) -> str:
    """`cpu`, or a GPU's kind and name: `cuda (NVIDIA H200)`."""
    if device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    return str(device)
