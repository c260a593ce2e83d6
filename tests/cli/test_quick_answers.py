"""Commands that only list or refuse something answer before torch is loaded."""

import importlib
import subprocess
import sys

import pytest

LAZY_PACKAGES = ["base", "data", "nn", "stats", "comparison", "training"]


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("methods", "temp_gated"),
        ("methods --settings", "gate_penalty"),
        ("recipe cora", "gate_penalty: 1.0e-05"),
        ("data list", "amazon_photo"),
        ("compare corra", "did you mean cora"),
        ("train corra --method gat", "did you mean cora"),
        ("predict model.ckpt corra", "did you mean cora"),
        ("data info corra", "did you mean cora"),
        ("data check corra", "there is no file or folder corra"),
        ("train cora --method gta", "did you mean gat"),
        ("compare cora --methods gta", "did you mean gat"),
    ],
)
def test_nothing_heavy_is_loaded_for(command: str, answer: str) -> None:
    arguments = [sys.executable, "-X", "importtime", "-m", "tempergat"]
    done = subprocess.run(
        [*arguments, *command.split()], capture_output=True, text=True, check=False
    )
    assert answer in done.stdout + done.stderr
    loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert not loaded & {"torch", "torch_geometric", "scipy", "matplotlib", "numpy"}


@pytest.mark.parametrize("package", LAZY_PACKAGES)
def test_every_listed_name_of_a_lazy_package_exists(package: str) -> None:
    module = importlib.import_module(f"tempergat.{package}")
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert not isinstance(getattr(module, name), type(sys)), name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = module.nonsense
