"""What `make dist` builds can be installed and used outside the project.

The wheel is built here without CPU kernels, which take a minute to compile: the
development install compiles them from the same CMakeLists.txt.
"""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
PACKAGE = PROJECT / "src" / "tempergat"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    pytest.importorskip("build")
    pytest.importorskip("scikit_build_core", reason="needs scikit-build-core")
    folder = tmp_path_factory.mktemp("dist")
    # Without isolation nothing is downloaded.
    options = ["--no-isolation", "--skip-dependency-check", "-Cwheel.cmake=false"]
    command = [sys.executable, "-m", "build", *options, "--outdir", str(folder)]
    done = subprocess.run([*command, str(PROJECT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def _only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def test_the_wheel_has_every_file_of_the_package_that_is_not_compiled(
    built: Path,
) -> None:
    with zipfile.ZipFile(_only(built, "*.whl")) as wheel:
        packed = set(wheel.namelist())
    listed = subprocess.run(
        ["git", "ls-files", "--", "src/tempergat"],
        capture_output=True,
        text=True,
        cwd=PROJECT,
    ).stdout.splitlines()
    if not listed:
        pytest.skip("not a checkout of git")
    assert {name.removeprefix("src/") for name in listed} <= packed
    assert not [name for name in packed if name.endswith(".so")]


def test_the_sdist_has_what_the_kernels_and_the_tests_need(built: Path) -> None:
    with tarfile.open(_only(built, "*.tar.gz")) as sdist:
        packed = {name.partition("/")[2] for name in sdist.getnames()}
    needed = {"CMakeLists.txt", "LICENSE", "README.md", "tests/test_distribution.py"}
    sources = (PACKAGE / "ops" / "cpu" / "csrc").rglob("*.*")
    needed |= {path.relative_to(PROJECT).as_posix() for path in sources}
    assert needed <= packed


def test_compare_runs_where_only_the_wheel_is_installed(
    built: Path, tmp_path: Path
) -> None:
    where = tmp_path / "environment"
    venv.create(where)
    python = where / "bin" / "python"
    wheel = _only(built, "*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    install = [*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, env=_environment())
    # The packages that tempergat needs are those of this environment. A path in a .pth
    # file is only searched: an editable tempergat that is there stays out of the way.
    site = Path(sysconfig.get_path("purelib", vars={"base": str(where)}))
    needed = [path for path in sys.path if path.endswith("-packages")]
    (site / "needed.pth").write_text("\n".join(needed))

    code = "import tempergat; print(tempergat.__file__)"
    assert Path(_output([python, "-c", code], tmp_path)).is_relative_to(where)
    command = [where / "bin" / "tempergat", "compare", "--methods", "gat,temp_gated"]
    table = _output([*command, "--runs", "2", "--epochs", "2"], tmp_path)
    assert "temp_gated" in table
    written = {path.name for path in (tmp_path / "tempergat-out").iterdir()}
    assert {"store.sqlite", "demo.csv", "demo.svg", "demo.html"} <= written


def _environment() -> dict[str, str]:
    left_out = ("PYTHONPATH", "PYTHONHOME")
    kept = {key: value for key, value in os.environ.items() if key not in left_out}
    return {**kept, "OMP_NUM_THREADS": "1"}


def _output(command: list[object], folder: Path) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        cwd=folder,
        env=_environment(),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _build(hook: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Calls the build as pip does, with a compiler that fails."""
    pytest.importorskip("scikit_build_core", reason="needs scikit-build-core")
    code = f"import build_backend, sys; print(build_backend.{hook}(sys.argv[1]))"
    tools = {"PYTHONPATH": str(PROJECT / "tools"), "CXX": "/bin/false"}
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.run(
        command,
        cwd=PROJECT,
        env=os.environ | tools,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_metadata_are_read_without_compiling(tmp_path: Path) -> None:
    done = _build("prepare_metadata_for_build_wheel", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tempergat:" not in done.stderr
    assert "Name: tempergat" in _only(tmp_path, "*/METADATA").read_text()


def test_a_compiler_that_fails_gives_a_wheel_without_kernels_and_says_so(
    tmp_path: Path,
) -> None:
    done = _build("build_wheel", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tempergat: the CPU kernels could not be compiled" in done.stderr
    with zipfile.ZipFile(_only(tmp_path, "*-py3-none-any.whl")) as wheel:
        assert not [name for name in wheel.namelist() if name.endswith(".so")]
