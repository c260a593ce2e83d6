"""A value for the source nodes of the edges and one for the target nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T", covariant=True)
Result = TypeVar("Result")


class Sides(Generic[T]):
    """One value for source nodes and one for target nodes.

    Attributes:
        src: The sources' value.
        dst: The targets' value: the same object as ``src`` where both sides share
            one value, None where the targets have none.
    """

    __slots__ = ("dst", "src")

    def __init__(self, src: T, dst: T | None) -> None:
        self.src = src
        self.dst = dst

    @property
    def is_shared(self) -> bool:
        """Whether both sides share one value."""
        return self.dst is self.src

    def map(
        self, function: Callable[..., Result], *others: Sides[Any]
    ) -> Sides[Result]:
        """Applies a function to each side, once where the sides share everything.

        Args:
            function: Takes one side's value, then those of ``others`` on that side.
            *others: More values by side. The result has no targets where one of these
                has none.
        """
        # Plain loops: a layer calls this several times in every forward pass.
        src = function(self.src, *[other.src for other in others])
        if self.dst is None:
            return Sides(src, None)
        shared = self.dst is self.src
        for other in others:
            if other.dst is None:
                return Sides(src, None)
            shared = shared and other.dst is other.src
        if shared:
            return Sides(src, src)
        return Sides(src, function(self.dst, *[other.dst for other in others]))
