"""Settings every test shares."""

import pytest
import torch


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the network as the only source."""
    monkeypatch.delenv("TEMPERGAT_MIRROR", raising=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in items:
        # Not item.keywords: the name of the folder tests/ops/gpu is one of them.
        if item.get_closest_marker("gpu") is not None:
            item.add_marker(skip)
