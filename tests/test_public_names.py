"""The public names of the package, in every order of imports."""

import os
import resource
import subprocess
import sys

import pytest

import tempergat
from tests.support.processes import ProcessStarter

FUNCTIONS = sorted(
    {
        "attention",
        "compare",
        "draw_node",
        "gate_penalty",
        "load",
        "load_model",
        "predict",
        "train",
        "upgrade",
    }
    & {*tempergat.__all__}
)
FIRST_IMPORTS = (
    "import tempergat",
    "import tempergat.training",
    "import tempergat.data.loading",
    "import tempergat.comparison.sweeps.sweep",
    "import tempergat.cli",
    "from tempergat import load",
)


@pytest.mark.parametrize("name", tempergat.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(tempergat, name) is not None
    assert name in dir(tempergat)


def test_importing_the_package_does_not_load_torch() -> None:
    code = "import sys, tempergat; dir(tempergat); print('torch' in sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert loaded == "False\n"


@pytest.mark.slow
def test_layers_are_imported_in_at_most_115_percent_of_the_time_of_pygs() -> None:
    ours = "from tempergat.nn import GATConv, TemperGATConv, upgrade"
    pygs = "from torch_geometric.nn import GATConv"
    times: dict[str, list[float]] = {ours: [], pygs: []}
    for code in (ours, pygs) * 6:
        times[code].append(_cpu_seconds(code))
    # The first one compiles modules, and others are slowed down by what else runs.
    assert min(times[ours]) < 1.15 * min(times[pygs])


def _cpu_seconds(code: str) -> float:
    """What a new process computes for; waiting for other processes does not count."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-W", "ignore", "-c", code]
    subprocess.run(command, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        tempergat.trian  # noqa: B018


@pytest.mark.parametrize("first", FIRST_IMPORTS)
def test_a_name_is_the_function_whatever_was_imported_first(
    python: ProcessStarter, first: str
) -> None:
    code = f"{first}\nimport tempergat, tempergat.training, types\n"
    code += f"for name in {FUNCTIONS}:\n"
    code += "    print(name, isinstance(getattr(tempergat, name), types.FunctionType))"
    ended = python.run(code)
    expected = "".join(f"{name} True\n" for name in FUNCTIONS)
    assert ended.stdout == expected, ended.stderr


def test_compare_is_a_function_once_every_module_is_imported(
    python: ProcessStarter,
) -> None:
    ended = python.run(
        "import importlib, pkgutil, tempergat\n"
        "for module in pkgutil.walk_packages(tempergat.__path__, 'tempergat.'):\n"
        "    if not module.name.endswith(('__main__', '_cpu')):\n"
        "        importlib.import_module(module.name)\n"
        "how = {'settings': {'epochs': 1}, 'device': 'cpu', 'progress': False}\n"
        "print(tempergat.compare('demo', 'gat', 1, **how).best)"
    )
    assert ended.stdout == "gat\n", ended.stderr
