"""What needs the extra `compare` asks for it in one line, before anything else."""

import sys
import tomllib
from pathlib import Path

import pytest

from tempergat.base import extras

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_one_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extras.require_compare("tempergat.data")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError) as refused:
        extras.require_compare("tempergat.data")
    assert str(refused.value) == (
        "tempergat.data needs packages that are not installed (pandas); run pip "
        "install 'tempergat[compare]' (in a clone: pip install '.[compare]')"
    )


def test_the_packages_asked_for_are_those_of_the_extra() -> None:
    wanted = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    names = {requirement.partition(">=")[0] for requirement in wanted["compare"]}
    asked = {"pyyaml" if name == "yaml" else name for name in extras._COMPARE.split()}
    assert names - {"annotated-types"} == asked
