"""Settings every test shares."""

import os
from pathlib import Path

import pytest
import torch

# Raw datasets kept beside the project, where there are any.
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
if SHARED_DATA.is_dir():
    mirrors = [str(SHARED_DATA), os.environ.get("TEMPERGAT_MIRROR", "")]
    os.environ["TEMPERGAT_MIRROR"] = os.pathsep.join(m for m in mirrors if m)


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
        if "gpu" in item.keywords:
            item.add_marker(skip)
