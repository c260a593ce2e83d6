"""The two models of noise, as distributions and as transforms."""

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy import stats

from tempergat.base.errors import UserError
from tempergat.data import gaussian, missing, normalize_rows
from tempergat.data import noise as noise_module
from tempergat.data.features import as_layout, csr_tensor

LEVEL = 1e-6


def words(rows: int = 400, columns: int = 60) -> torch.Tensor:
    matrix = scipy.sparse.random(rows, columns, 0.05, format="csr", random_state=0)
    return csr_tensor(matrix.indptr, matrix.indices, matrix.data, columns)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_gaussian_noise_is_normal_and_independent_of_the_layout(layout: str) -> None:
    x = words() if layout == "sparse" else words().to_dense()
    noisy = gaussian(x, 0.5, seed=3)
    assert noisy.layout == torch.strided
    added = ((noisy - words().to_dense()) / 0.5).double().numpy()
    assert stats.kstest(added.ravel(), "norm").pvalue > LEVEL
    assert abs(np.corrcoef(added[:, 0], added[:, 1])[0, 1]) < 0.25
    assert torch.equal(noisy, gaussian(words(), 0.5, seed=3))
    assert not torch.equal(noisy, gaussian(words(), 0.5, seed=4))


def test_missing_keeps_observed_values_and_replaces_zeros_too() -> None:
    x = words().to_dense()
    noisy, observed = missing(words(), 0.4, 3.0, seed=1)
    assert torch.equal(noisy[observed], x[observed])
    lost = ~observed
    assert (noisy[lost] != 0).all()
    assert (lost & (x == 0)).any()
    values = (noisy[lost] / 3.0).double().numpy()
    assert stats.kstest(values, "norm").pvalue > LEVEL
    assert stats.binomtest(int(lost.sum()), lost.numel(), 0.4).pvalue > LEVEL


def test_coordinates_are_lost_independently() -> None:
    _, observed = missing(torch.zeros(20_000, 2), 0.3, 1.0, seed=0)
    pairs = np.bincount((observed[:, 0] * 2 + observed[:, 1]).numpy(), minlength=4)
    expected = 20_000 * np.array([0.09, 0.21, 0.21, 0.49])
    assert stats.chisquare(pairs, expected).pvalue > LEVEL


def test_noise_does_not_depend_on_the_size_of_a_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = gaussian(words(), 1.0, 0), *missing(words(), 0.5, 1.0, 0)
    monkeypatch.setattr(noise_module, "_BLOCK_ENTRIES", 1000)
    blocks = gaussian(words(), 1.0, 0), *missing(words(), 0.5, 1.0, 0)
    assert all(torch.equal(a, b) for a, b in zip(whole, blocks, strict=True))


def test_no_noise_returns_the_features_in_a_copy_of_their_own() -> None:
    x = torch.randn(5, 3)
    same = gaussian(x, 0.0, 0)
    kept, observed = missing(x, 0.0, 1.0, 0)
    assert torch.equal(same, x)
    assert torch.equal(kept, x)
    assert observed.all()
    same.zero_()
    kept.zero_()
    assert (x != 0).any()
    everything, none = missing(x, 1.0, 0.0, 0)
    assert not everything.any()
    assert not none.any()


def test_result_is_dense_float_whatever_comes_in() -> None:
    assert gaussian(torch.ones(2, 2, dtype=torch.int64), 1.0, 0).dtype == torch.float32
    assert gaussian(torch.ones(2, 2).double(), 1.0, 0).dtype == torch.float64


def test_features_that_do_not_fit_are_refused_with_their_size() -> None:
    huge = csr_tensor(np.zeros(10**6 + 1), np.empty(0), np.empty(0), 10**6)
    with pytest.raises(UserError, match=r"1000000 x 1000000 .*3725.3 GiB"):
        gaussian(huge, 1.0, 0)
    with pytest.raises(UserError, match=r"1000000 x 1000000 .*4656.6 GiB"):
        missing(huge, 0.5, 1.0, 0)
    with pytest.raises(UserError, match=r"GiB"):
        as_layout(huge, False)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda x: gaussian(x, -1.0, 0), "sigma is -1.0"),
        (lambda x: gaussian(x, float("nan"), 0), "sigma is nan"),
        (lambda x: missing(x, -0.1, 1.0, 0), "rho is -0.1"),
        (lambda x: missing(x, float("nan"), 1.0, 0), "rho is nan"),
        (lambda x: missing(x, 0.5, float("inf"), 0), "tau is inf"),
        (lambda x: gaussian(x[0], 1.0, 0), "shape"),
    ],
)
def test_senseless_parameters_are_named(call: object, named: str) -> None:
    with pytest.raises(UserError, match=named):
        call(torch.ones(2, 2))  # type: ignore[operator]


def test_rows_sum_to_one_in_either_layout() -> None:
    x = words()
    x_dense = x.to_dense()
    normal = normalize_rows(x)
    assert normal.layout == torch.sparse_csr
    assert torch.allclose(normal.to_dense(), normalize_rows(x_dense))
    sums = normal.to_dense().sum(dim=1)
    filled = x_dense.any(dim=1)
    assert torch.allclose(sums[filled], torch.ones(int(filled.sum())))
    assert not sums[~filled].any()


def test_layout_is_chosen_by_density() -> None:
    assert as_layout(words().to_dense(), "auto").layout == torch.sparse_csr
    assert as_layout(torch.ones(4, 4), "auto").layout == torch.strided
    assert as_layout(torch.ones(4, 4), True).layout == torch.sparse_csr
    with pytest.raises(UserError, match="sparse is 'yes'"):
        as_layout(torch.ones(4, 4), "yes")
