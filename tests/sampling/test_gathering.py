"""Rows copied out of large tensors."""

import pytest
import torch

from tempergat.sampling.storage import gathering
from tempergat.sampling.storage.gathering import gather


@pytest.mark.parametrize("large", [1, 1 << 22])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str
)
def test_rows_are_those_of_index_select(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, large: int
) -> None:
    monkeypatch.setattr(gathering, "_LARGE", large)
    index = torch.tensor([4, 0, 4, 19])
    for shape in ((20,), (20, 3), (20, 0), (20, 3, 2)):
        x = (torch.randn(shape) * 9).to(dtype)
        assert torch.equal(gather(x, index), x.index_select(0, index))
        nothing = torch.empty(0, dtype=torch.long)
        assert gather(x, nothing).shape == (0, *shape[1:])
    x = torch.randn(3, 20).to(dtype)
    assert torch.equal(gather(x, index, 1), x.index_select(1, index))
    assert torch.equal(gather(x.t(), index), x.t().index_select(0, index))


def test_gradients_pass_through() -> None:
    x = torch.randn(2000, 1024, requires_grad=True)
    gather(x, torch.arange(1500)).sum().backward()
    assert x.grad is not None
    assert x.grad.sum() == 1500 * 1024
