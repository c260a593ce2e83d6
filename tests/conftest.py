"""Settings every test shares."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.support.browser import browser
from tests.support.processes import ProcessStarter


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the network as the only source."""
    monkeypatch.delenv("TEMPERGAT_MIRROR", raising=False)


@pytest.fixture(scope="session")
def python() -> Iterator[ProcessStarter]:
    """New processes in which only other packages are imported."""
    with ProcessStarter("import torch, torch_geometric.nn, scipy.stats") as starter:
        yield starter


@pytest.fixture(scope="session")
def starter() -> Iterator[ProcessStarter]:
    """Commands in processes of their own, in which all that they need is imported."""
    with ProcessStarter() as started:
        yield started


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A running browser; tests that ask for it are skipped where there is none."""
    with browser() as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in items:
        # Not item.keywords: the name of the folder tests/ops/gpu is one of them.
        if item.get_closest_marker("gpu") is not None:
            item.add_marker(skip)
