"""What there is: `tempergat methods`, `recipe`, and `doctor` on this installation."""

import importlib.metadata
import importlib.util
import itertools
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.base import counted
from tempergat.cli.options.shared import Json
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

EXAMPLES = {
    "methods": ("tempergat methods", "tempergat methods --settings"),
    "recipe": ("tempergat recipe cora", "tempergat recipe default"),
    "doctor": ("tempergat doctor", "tempergat doctor --json"),
}


def methods(
    settings: Annotated[
        bool,
        typer.Option("--settings", help="List the settings that --set takes instead."),
    ] = False,
    as_json: Json = False,
) -> None:
    """The methods and what they are made of."""
    from tempergat.cli.ui.tables import SafeConsole, print_table
    from tempergat.comparison import Table
    from tempergat.nn import METHODS

    if settings:
        _print_settings(as_json)
        return
    if as_json:
        listed = [
            {"method": name, "description": row.description, **row._asdict()}
            for name, row in METHODS.items()
        ]
        print_json({"methods": listed})
        return
    rows = tuple(
        (name, row.description, "yes" if row.in_paper else "no")
        for name, row in METHODS.items()
    )
    table = Table(
        "Methods",
        ("method", "what it is", "in the paper"),
        rows,
        (
            "`tempergat compare` compares those in the paper and mlp; --methods names "
            "others.",
        ),
    )
    print_table(SafeConsole(), table)


def _print_settings(as_json: bool) -> None:
    """Every setting: its values, what it does, and what has it."""
    from tempergat.training import HAVING, NAMES, PARTS, help_of, values_of

    facts = [
        {
            "setting": name,
            "short": next((o for o in NAMES if name in NAMES[o] and o != name), None),
            "values": values_of(name),
            "for": HAVING[part],
            "help": help_of(name),
        }
        for name, part in PARTS.items()
    ]
    if as_json:
        print_json({"settings": facts})
        return
    for title, group in itertools.groupby(facts, lambda one: one["for"]):
        echo(f"for {title}:")
        for one in group:
            also = f" (short: {one['short']})" if one["short"] else ""
            echo(f"  {one['setting']}{also}: {one['values']}\n      {one['help']}")


def recipe(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A recipe or a YAML file; lists the recipes when left out.",
        ),
    ] = None,
) -> None:
    """Print a recipe in full as YAML, to copy."""
    from tempergat.training import recipe_names, recipe_text

    if name is None:
        echo("\n".join(recipe_names()))
        return
    if Path(name).suffix:
        from tempergat.training import load_recipe

        # Refuses a file with settings that there are not.
        load_recipe(name)
    echo(recipe_text(name))


def doctor(as_json: Json = False) -> None:
    """Versions, devices and attention kernels."""
    findings = examine()
    if as_json:
        print_json(findings)
        return
    for name, version in findings["versions"].items():
        echo(f"{name:16} {version or 'not installed'}")
    for device in findings["devices"]:
        echo(f"\n{device['device']}: {device['name']}")
        echo(f"  attention is computed by {_BACKENDS[device['backend']]}")
        for backend, reason in device["refused"].items():
            echo(f"  not by {_BACKENDS[backend]}: {reason}")
        if device["backend"] == "gpu":
            echo(f"  kernels are launched {findings['triton_launch']}")
    if findings["no_cuda"]:
        echo(f"\ncuda: {findings['no_cuda']}")
    echo(f"\ndatasets are kept in {findings['data_root']}")
    for mirror in findings["mirrors"]:
        echo(f"and looked for in {mirror}")


def examine() -> dict[str, Any]:
    """Everything the command prints, as plain values."""
    import torch

    from tempergat import __version__
    from tempergat.data import data_root, mirror_folders
    from tempergat.ops import launch_path

    versions = {
        "tempergat": __version__,
        "python": f"{platform.python_version()} on {platform.platform()}",
        **{name: _installed(name) for name in _PACKAGES},
    }
    cuda = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    return {
        "versions": versions,
        "devices": [_examine(device) for device in (torch.device("cpu"), *cuda)],
        "triton_launch": launch_path(),
        "no_cuda": None if cuda else _why_no_cuda(),
        "data_root": str(data_root()),
        "mirrors": [str(folder) for folder in mirror_folders()],
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
