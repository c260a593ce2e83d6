"""Where runs were made; runs of different origins are not compared."""

from collections.abc import Mapping
from typing import NamedTuple

from tempergat.base import counted
from tempergat.training import NUMERICS


class Origin(NamedTuple):
    """The device and the numerics a run was made with."""

    device: str
    numerics: int

    def __str__(self) -> str:
        if self.numerics == NUMERICS:
            return self.device
        return f"{self.device} with numerics {self.numerics}"


def elsewhere_note(elsewhere: Mapping[Origin, int]) -> str | None:
    """A sentence about stored runs that are not used; None where there are none."""
    if not elsewhere:
        return None
    counts = " and ".join(
        f"{counted(count, 'run')} made on {origin}"
        for origin, count in elsewhere.items()
    )
    many = sum(elsewhere.values()) > 1
    return (
        f"{counts} {'are' if many else 'is'} in the store and "
        f"{'are' if many else 'is'} not compared with these."
    )
