"""The two ways of building the CPU kernels agree."""

import re
from pathlib import Path

import pytest

from tempergat.ops.cpu import build

CMAKE = Path(__file__).resolve().parents[3] / "CMakeLists.txt"
# What CMake says by properties of its own.
BY_PROPERTY = {
    "-std=c++17": "cxx_std_17",
    "-fPIC": "POSITION_INDEPENDENT_CODE ON",
    "-fvisibility=hidden": "CXX_VISIBILITY_PRESET hidden",
}


def _cmake_list(name: str) -> list[str]:
    found = re.search(rf"set\({name} (.*?)\)", CMAKE.read_text())
    assert found is not None
    return found[1].replace('"', "").split()


def test_cmake_and_the_build_command_use_the_same_flags() -> None:
    flags = [flag for flag in build.FLAGS if flag not in BY_PROPERTY]
    assert sorted(flags) == sorted(_cmake_list("options"))
    for text in BY_PROPERTY.values():
        assert text in CMAKE.read_text()
    assert BY_PROPERTY.keys() <= set(build.FLAGS)


def test_cmake_and_the_build_command_know_the_same_instruction_sets() -> None:
    for isa, flags in build.ISA_FLAGS.items():
        assert list(flags) == _cmake_list(f"flags_{isa}")
    cmake = CMAKE.read_text()
    added = re.search(r"list\(APPEND isas (.*?)\)", cmake)
    assert added is not None
    assert ["generic", *added[1].split()] == list(build.ISA_FLAGS)


def test_asking_for_help_builds_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build, "build", lambda path: pytest.fail(f"built {path}"))
    monkeypatch.setattr("sys.argv", ["build", "--help"])
    with pytest.raises(SystemExit):
        build.main()
    assert "Builds the CPU kernels" in capsys.readouterr().out
