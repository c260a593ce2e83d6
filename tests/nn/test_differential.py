"""Layers drawn at random are PyG's, or those of the equations: outputs and gradients.

Among the draws are widths as a number, a pair and lazy ones, every form of input, empty
graphs, sizes on both sides of every limit in the code, `HeteroConv`, `to_hetero` and
`upgrade`. A draw that fails is printed as code that can be run alone.
"""

import pytest

from tests.support.layer_draws import draw

BLOCK = 50


def blocks(fast: int, slow: int) -> list:
    """Where the blocks of draws begin, the slow ones after the fast ones."""
    starts = range(fast, fast + slow, BLOCK)
    marked = [pytest.param(k, marks=pytest.mark.slow) for k in starts]
    return [*range(0, fast, BLOCK), *marked]


def run(first: int, count: int, device: str, check: str) -> None:
    failures = []
    for number in range(first, first + count):
        code = draw(number, device, check)
        try:
            exec(code, {"__name__": "draw"})
        except Exception as error:
            failures.append(f"draw {number}: {error!r}\n\n{code}")
    assert not failures, "\n\n".join(failures)


@pytest.mark.parametrize("first", blocks(150, 1650))
def test_drawn_layers_are_right(first: int) -> None:
    run(first, BLOCK, "cpu", "assert_same")


@pytest.mark.gpu
# PyG advises to install another package for fill_value="max".
@pytest.mark.filterwarnings("ignore:The usage of `scatter")
@pytest.mark.parametrize("first", blocks(300, 0))
def test_drawn_layers_are_right_on_a_gpu(first: int) -> None:
    run(first, BLOCK, "cuda", "assert_same")


@pytest.mark.parametrize(
    ("first", "count"), [(0, 10), pytest.param(10, 200, marks=pytest.mark.slow)]
)
def test_drawn_layers_are_right_under_vmap(first: int, count: int) -> None:
    run(first, count, "cpu", "assert_same_under_vmap")


@pytest.mark.parametrize(
    ("first", "count"), [(0, 2), pytest.param(2, 23, marks=pytest.mark.slow)]
)
def test_drawn_layers_are_right_when_traced(first: int, count: int) -> None:
    run(first, count, "cpu", "assert_same_traced")


@pytest.mark.slow
def test_drawn_layers_are_right_when_compiled() -> None:
    # A C++ compiler takes seconds for each; what torch traces is drawn more often.
    run(0, 8, "cpu", "assert_same_compiled")
