"""The CPU kernels, as the tests of the ops need them."""

import pytest

from tempergat.ops.cpu import library as cpu


@pytest.fixture(scope="session")
def kernels() -> cpu.Library:
    """The compiled kernels; `make` builds them when their source has changed."""
    if cpu.library.problem is not None:
        pytest.skip(f"no CPU kernels: {cpu.library.problem}")
    return cpu.library
