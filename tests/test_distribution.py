"""What `make dist` builds can be installed and used outside the project.

The wheel is built here without CPU kernels, which take a minute to compile: the
development install compiles them from the same CMakeLists.txt.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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
    where, site = _install(built, tmp_path)
    # The packages that tempergat needs are those of this environment. A path in a .pth
    # file is only searched: an editable tempergat that is there stays out of the way.
    needed = [path for path in sys.path if path.endswith("-packages")]
    (site / "needed.pth").write_text("\n".join(needed))

    code = "import tempergat; print(tempergat.__file__)"
    python = where / "bin" / "python"
    assert Path(_output([python, "-c", code], tmp_path)).is_relative_to(where)
    command = [where / "bin" / "tempergat", "compare", "--methods", "gat,temp_gated"]
    table = _output([*command, "--runs", "2", "--epochs", "2"], tmp_path)
    assert "temp_gated" in table
    written = {path.name for path in (tmp_path / "tempergat-out").iterdir()}
    assert {"store.sqlite", "demo.csv", "demo.svg", "demo.html"} <= written


@pytest.fixture(scope="module")
def core(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with what `pip install tempergat` installs."""
    where, site = _install(built, tmp_path_factory.mktemp("core"))
    for package in _with_requirements("torch", "torch-geometric", "numpy"):
        # Files outside site-packages are programs.
        tops = {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(package.locate_file(top)))
    return where / "bin"


def _with_requirements(*names: str) -> Iterator[metadata.Distribution]:
    """Installed packages and all that they require here, each once."""
    found: dict[str, metadata.Distribution] = {}
    left = list(names)
    while left:
        package = metadata.distribution(left.pop())
        if package.name not in found:
            found[package.name] = package
            required = map(Requirement, package.requires or ())
            left += [
                one.name
                for one in required
                if one.marker is None or one.marker.evaluate({"extra": ""})
            ]
    yield from found.values()


def test_the_core_requires_torch_pyg_and_numpy_alone(
    core: Path, tmp_path: Path
) -> None:
    pip = [sys.executable, "-m", "pip", "--python", core / "python"]
    assert _output([*pip, "check"], tmp_path) == "No broken requirements found."
    # torch requires jinja2.
    code = """
from importlib.util import find_spec
from tempergat.base.extras import _COMPARE
print([name for name in _COMPARE.split() if name != "jinja2" and find_spec(name)])
"""
    assert _output([core / "python", "-c", code], tmp_path) == "[]"


def test_layers_upgrade_and_sampling_run_with_the_core(
    core: Path, tmp_path: Path
) -> None:
    code = """
import importlib, pkgutil, warnings
warnings.filterwarnings("ignore", "tempergat has no CPU kernels")
import torch, torch_geometric.nn
from torch_geometric.data import Data
import tempergat.nn, tempergat.ops, tempergat.sampling
from tempergat import NeighborSampler, TemperGATConv, upgrade

for package in (tempergat.nn, tempergat.ops, tempergat.sampling):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if ".gpu." not in module.name:
            importlib.import_module(module.name)
    assert all(getattr(package, name) is not None for name in package.__all__)

edges = torch.randint(30, (2, 90), generator=torch.Generator().manual_seed(0))
data = Data(torch.randn(30, 8), edges, y=torch.arange(30) % 2)
layer = TemperGATConv(8, 2, heads=2)
layer(data.x, edges).sum().backward()
assert all(weight.grad is not None for weight in layer.parameters())

model = torch_geometric.nn.GAT(8, 4, 2)
before = model(data.x, edges)
assert upgrade(model)
torch.testing.assert_close(model(data.x, edges), before)

batch = next(iter(NeighborSampler(data, [3, 2], batch_size=5)))
print(model(batch.x, batch.edge_index).shape == (len(batch.x), 4))
"""
    assert _output([core / "python", "-c", code], tmp_path) == "True"


def test_the_check_of_a_release_runs_layers_and_misses_kernels(
    core: Path, tmp_path: Path
) -> None:
    check = [core / "python", PROJECT / "tools" / "check_installed.py"]
    assert "layers run on plain PyTorch" in _output([*check, "plain"], tmp_path)
    assert "_cpu.so was not built" in _run([*check, "kernels"], tmp_path).stderr


def test_doctor_and_the_version_are_answered_with_the_core(
    core: Path, tmp_path: Path
) -> None:
    found = json.loads(_output([core / "tempergat", "doctor", "--json"], tmp_path))
    assert found["versions"]["torch"] == metadata.version("torch")
    assert found["versions"]["scipy"] is None
    assert found["devices"][0]["backend"] == "reference"
    assert "tempergat" in _output([core / "tempergat", "--version"], tmp_path)


@pytest.mark.parametrize(
    "code",
    [
        "import tempergat; tempergat.compare('demo')",
        "import tempergat; tempergat.train('demo')",
        "import tempergat; tempergat.predict('model', 'demo')",
        "from tempergat import load_model",
        "from tempergat.data import load",
        "import tempergat.training.single.checkpoint",
        "import tempergat.stats",
    ],
)
def test_what_needs_more_than_the_core_says_so_in_the_last_line(
    core: Path, tmp_path: Path, code: str
) -> None:
    done = _run([core / "python", "-c", code], tmp_path)
    line = done.stderr.splitlines()[-1]
    assert line.startswith("ModuleNotFoundError: tempergat.")
    assert "needs packages that are not installed (scipy, pydantic, typer" in line
    assert "pip install 'tempergat[compare]'" in line


def test_a_command_without_what_it_needs_ends_in_one_line(
    core: Path, tmp_path: Path
) -> None:
    done = _run([core / "tempergat", "compare"], tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "pip install 'tempergat[compare]'" in line


def _install(built: Path, folder: Path) -> tuple[Path, Path]:
    """An environment with the wheel alone, and its site-packages."""
    where = folder / "environment"
    venv.create(where)
    wheel = _only(built, "*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(where / "bin" / "python")]
    install = [*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, env=_environment())
    return where, Path(sysconfig.get_path("purelib", vars={"base": str(where)}))


def _environment() -> dict[str, str]:
    left_out = ("PYTHONPATH", "PYTHONHOME")
    kept = {key: value for key, value in os.environ.items() if key not in left_out}
    return {**kept, "OMP_NUM_THREADS": "1"}


def _run(command: list[object], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        cwd=folder,
        env=_environment(),
    )


def _output(command: list[object], folder: Path) -> str:
    done = _run(command, folder)
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
