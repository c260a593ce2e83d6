"""Devices, their memory, and how many runs they train at once."""

from tempergat.training.hardware.capture import (
    EPOCHS_TO_CAPTURE,
    capture_work,
    replayed,
)
from tempergat.training.hardware.compiling import compile_kernels
from tempergat.training.hardware.devices import choose_device, device_name
from tempergat.training.hardware.grouping import (
    bytes_per_seed,
    group_size,
    groups_at_once,
)
from tempergat.training.hardware.memory import (
    OutOfMemory,
    explain_out_of_memory,
    free_memory,
    keep_freed_memory,
)

__all__ = [
    "EPOCHS_TO_CAPTURE",
    "OutOfMemory",
    "bytes_per_seed",
    "capture_work",
    "choose_device",
    "compile_kernels",
    "device_name",
    "explain_out_of_memory",
    "free_memory",
    "group_size",
    "groups_at_once",
    "keep_freed_memory",
    "replayed",
]
