"""The CPU kernels, as the tests of the ops need them."""

from pathlib import Path

import pytest

from tempergat.base.errors import UserError
from tempergat.ops.cpu import build
from tempergat.ops.cpu import library as cpu


@pytest.fixture(scope="session")
def kernels() -> cpu.Library:
    """The compiled kernels, built where they are missing or older than their source."""
    path = cpu.library_path()
    sources = [*(Path(cpu.__file__).parent / "csrc").rglob("*")]
    newest = max(source.stat().st_mtime for source in sources)
    if not path.is_file() or path.stat().st_mtime < newest:
        try:
            build.build(path)
        except UserError as error:
            pytest.skip(f"no CPU kernels: {error}")
        cpu.library = cpu.Library(path)
    if cpu.library.problem is not None:
        pytest.skip(f"no CPU kernels: {cpu.library.problem}")
    return cpu.library
