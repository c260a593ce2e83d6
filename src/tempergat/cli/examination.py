"""What `tempergat doctor` finds, also where no other command can be used."""

import importlib.metadata
import os
import platform
from typing import TYPE_CHECKING, Any

from tempergat.base import counted, what_is_missing
from tempergat.cli.ui.output import echo, print_json

if TYPE_CHECKING:
    import torch

_PACKAGES = (
    "torch",
    "torch-geometric",
    "numpy",
    "scipy",
    "pydantic",
    "safetensors",
    "matplotlib",
    "triton",
    "pyarrow",
    "optuna",
    "tensorboard",
    "wandb",
)

_BACKENDS = {
    "gpu": "our Triton kernels",
    "cpu": "our C++ kernels",
    "reference": "the reference, in plain PyTorch",
}


def print_findings(*, as_json: bool) -> None:
    """Prints what `examine` finds, as text or JSON."""
    findings = examine()
    if as_json:
        print_json(findings)
        return
    for name, version in findings["versions"].items():
        echo(f"{name:16} {version or 'not installed'}")
    for limit in findings["limits"]:
        echo(f"torch {findings['versions']['torch']}: {limit}")
    for device in findings["devices"]:
        echo(f"\n{device['device']}: {device['name']}")
        echo(f"  attention is computed by {_BACKENDS[device['backend']]}")
        for backend, reason in device["refused"].items():
            echo(f"  not by {_BACKENDS[backend]}: {reason}")
        if device["backend"] == "gpu":
            echo(f"  kernels are launched {findings['triton_launch']}")
    if findings["no_cuda"]:
        echo(f"\ncuda: {findings['no_cuda']}")
    if findings["data_root"] is None:
        echo(f"\n{what_is_missing('Every other command')}")
        return
    echo(f"\ndatasets are kept in {findings['data_root']}")
    for mirror in findings["mirrors"]:
        echo(f"and looked for in {mirror}")


def examine() -> dict[str, Any]:
    """Everything the command prints, as plain values."""
    import torch

    from tempergat import __version__
    from tempergat.ops import LIMITS, launch_path

    versions = {
        "tempergat": __version__,
        "python": f"{platform.python_version()} on {platform.platform()}",
        **{name: _installed(name) for name in _PACKAGES},
    }
    folders: dict[str, Any] = {"data_root": None, "mirrors": []}
    if what_is_missing("tempergat.data") is None:
        from tempergat.data import data_root, mirror_folders

        folders["data_root"] = str(data_root())
        folders["mirrors"] = [str(folder) for folder in mirror_folders()]
    cuda = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    return {
        "versions": versions,
        "devices": [_examine(device) for device in (torch.device("cpu"), *cuda)],
        "limits": list(LIMITS),
        "triton_launch": launch_path(),
        "no_cuda": None if cuda else _why_no_cuda(),
        **folders,
    }


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _examine(device: "torch.device") -> dict[str, Any]:
    import torch

    from tempergat.ops import Graph, explain

    # A small call in float32, which every usable backend takes.
    edge_index = torch.tensor([[0, 1], [1, 0]], device=device)
    choice = explain(Graph(edge_index, 2), torch.zeros(2, 8, 8, device=device))
    refused = dict(choice.refused)
    if device.type == "cpu":
        refused.pop("gpu", None)
    return {
        "device": str(device),
        "name": _name(device),
        "backend": choice.backend,
        "refused": refused,
    }


def _name(device: "torch.device") -> str:
    import torch

    if device.type == "cpu":
        return (
            f"{platform.processor() or platform.machine()}, "
            f"{counted(os.cpu_count() or 1, 'core')}, "
            f"{counted(torch.get_num_threads(), 'thread')} in use"
        )
    facts = torch.cuda.get_device_properties(device)
    return (
        f"{facts.name}, {facts.total_memory / 2**30:.0f} GiB, compute capability "
        f"{facts.major}.{facts.minor}"
    )


def _why_no_cuda() -> str:
    import torch

    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without it"
    return (
        f"torch {torch.__version__} is built for CUDA {torch.version.cuda}, but sees "
        "no device; check the driver and CUDA_VISIBLE_DEVICES"
    )
