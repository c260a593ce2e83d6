"""`Sides` applies a function once where both sides are one."""

import pytest

from tempergat.nn import Sides


@pytest.mark.parametrize(
    ("first", "second", "calls"),
    [
        (Sides("a", "a"), Sides("b", "b"), 1),
        (Sides("a", "a"), Sides("b", "c"), 2),
        (Sides("a", "b"), Sides("c", "c"), 2),
        (Sides("a", None), Sides("b", "b"), 1),
        (Sides("a", "a"), Sides("b", None), 1),
    ],
)
def test_a_function_is_applied_to_each_present_side(first, second, calls):
    seen = []

    def join(a, b):
        seen.append((a, b))
        return [a, b]

    joined = first.map(join, second)
    assert joined.src == [first.src, second.src]
    assert len(seen) == calls
    if first.dst is None or second.dst is None:
        assert joined.dst is None
    else:
        assert joined.dst == [first.dst, second.dst]
    assert joined.is_shared == (calls == 1 and joined.dst is not None)
