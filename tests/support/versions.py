"""Versions of PyTorch and PyG, and tests that need a newer one than the oldest."""

import pytest
import torch
import torch_geometric


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


TORCH = _numbers(torch.__version__)
PYG = _numbers(torch_geometric.__version__)


def needs_torch(major: int, minor: int, because: str) -> pytest.MarkDecorator:
    """Skips a test on older versions of PyTorch, and says why."""
    reason = f"needs torch {major}.{minor}: {because}"
    return pytest.mark.skipif((major, minor) > TORCH, reason=reason)
