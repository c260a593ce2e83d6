"""Counter-based dropout: right in distribution, a function of seed and index."""

import pytest
import torch
from scipy import stats

from tempergat.ops.random import (
    draw_seed,
    dropout,
    fold_in,
    fold_numbers,
    keep_mask,
    random_bits,
)

COUNT = 200_000


@pytest.mark.parametrize("seed", [0, -5, 2**63 - 1])
def test_seeds_are_folded_on_the_host_as_in_tensors(seed):
    for numbers in ((0,), (2**40, 7), (-1, 3, 2**31)):
        word = torch.tensor(seed)
        for number in numbers:
            word = fold_in(word, number)
        assert fold_numbers(seed, *numbers) == int(word)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_share_dropped_is_the_rate(rate):
    keep = keep_mask(torch.tensor(7), torch.arange(COUNT), rate)
    kept = int(keep.sum())
    assert stats.binomtest(kept, COUNT, 1 - rate).pvalue > 1e-4


def test_bits_are_uniform():
    bits = random_bits(torch.tensor(3), torch.arange(COUNT)) >> 24
    counts = torch.bincount(bits, minlength=256)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-4


def test_masks_of_different_heads_and_steps_are_independent():
    seed = torch.tensor(42)
    index = torch.arange(COUNT)
    masks = [keep_mask(fold_in(seed, i), index, 0.5).double() for i in range(6)]
    masks += [keep_mask(fold_in(seed + 1, i), index, 0.5).double() for i in range(6)]
    correlation = torch.corrcoef(torch.stack(masks))
    off = correlation - torch.eye(12)
    assert off.abs().max() < 5 / COUNT**0.5


def test_neighbouring_elements_are_independent():
    mask = keep_mask(torch.tensor(1), torch.arange(COUNT), 0.5).double()
    for lag in (1, 2, 3, 64, 1000):
        pair = torch.stack([mask[:-lag], mask[lag:]])
        assert torch.corrcoef(pair)[0, 1].abs() < 5 / COUNT**0.5


def test_large_indices_differ_from_their_low_halves():
    low = torch.arange(1000)
    high = low + 2**32
    seed = torch.tensor(5)
    assert (random_bits(seed, low) != random_bits(seed, high)).float().mean() > 0.99


def test_known_values_never_change():
    bits = random_bits(torch.tensor([0, -1, 2**62]), torch.tensor([0, 1, 2**33 + 5]))
    again = [_bits(0, 0), _bits(2**64 - 1, 1), _bits(2**62, 2**33 + 5)]
    assert bits.tolist() == again


def _bits(seed: int, index: int) -> int:
    """The same in plain integers, as a kernel in another language would have it."""

    def mix(x):
        x ^= x >> 16
        x = x * 0x7FEB352D & 0xFFFFFFFF
        x ^= x >> 15
        x = x * 0x846CA68B & 0xFFFFFFFF
        return x ^ x >> 16

    x = mix((index ^ seed) & 0xFFFFFFFF)
    return mix(x ^ index >> 32 ^ seed >> 32)


def test_dropout_scales_what_it_keeps():
    x = torch.randn(50, 40, dtype=torch.double)
    out = dropout(x, 0.3, torch.tensor(9))
    kept = out != 0
    assert torch.allclose(out[kept], x[kept] / 0.7)
    assert 0.6 < kept.double().mean() < 0.8
    assert dropout(x, 0.0, torch.tensor(9)) is x


def test_seeds_drawn_follow_torchs_generator():
    torch.manual_seed(1)
    first = draw_seed(torch.device("cpu"))
    torch.manual_seed(1)
    assert torch.equal(draw_seed(torch.device("cpu")), first)


def test_folding_in_gives_distinct_seeds():
    seeds = fold_in(torch.tensor(0), torch.arange(10_000))
    assert len(seeds.unique()) == 10_000
