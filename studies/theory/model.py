"""The contextual stochastic block model of one target and its neighbours.

The graph itself is never built: a target with ``K`` neighbours, their labels and their
features are all that one attention layer sees.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import stats

FloatArray = npt.NDArray[np.float64]

# Degree distributions are cut where less than this probability is left.
TAIL = 1e-12


@dataclass(frozen=True)
class Degree:
    """How many neighbours a target has: the possible counts and their probabilities."""

    counts: tuple[int, ...]
    probabilities: tuple[float, ...]

    @classmethod
    def fixed(cls, count: int) -> Self:
        """Every target has ``count`` neighbours."""
        return cls((count,), (1.0,))

    @classmethod
    def poisson(cls, mean: float) -> Self:
        """Poisson, conditioned on more than one neighbour: the sparse block model."""
        last = int(stats.poisson.isf(TAIL, mean)) + 2
        counts = np.arange(2, last + 1)
        return cls._normalised(counts, stats.poisson.pmf(counts, mean))

    @classmethod
    def binomial(cls, trials: int, probability: float) -> Self:
        """Binomial, conditioned on more than one neighbour: the finite block model."""
        counts = np.arange(2, trials + 1)
        return cls._normalised(counts, stats.binom.pmf(counts, trials, probability))

    @classmethod
    def _normalised(cls, counts: npt.NDArray[np.int64], mass: FloatArray) -> Self:
        kept = mass > TAIL * mass.max()
        mass = mass[kept] / mass[kept].sum()
        return cls(tuple(counts[kept].tolist()), tuple(mass.tolist()))

    def expect(self, values: FloatArray) -> float:
        """Mean of ``values``, one per possible count."""
        return float(np.dot(values, self.probabilities))


@dataclass(frozen=True)
class Setting:
    """One target's neighbourhood before noise.

    Two classes have the means ``+signal`` and ``-signal``. With more classes, class
    ``c`` has the mean ``signal`` on the coordinates ``c, c + classes, ...`` and zero
    elsewhere. This keeps classes exchangeable if signal and weights are equal and the
    classes divide the coordinates.

    Args:
        signal: The class signal, one value per coordinate.
        weights: The positive weights of the l1 distance, one per coordinate.
        a: Edge intensity inside a class.
        b: Edge intensity to each other class; above ``a`` under heterophily.
        degree: The number of neighbours.
        classes: The number of classes.
        self_loop: Whether the target attends to itself as well.
    """

    signal: tuple[float, ...]
    weights: tuple[float, ...]
    a: float = 3.0
    b: float = 1.0
    degree: Degree = Degree((16,), (1.0,))
    classes: int = 2
    self_loop: bool = False

    @property
    def same_class_probability(self) -> float:
        """Probability that a neighbour has the target's label."""
        return self.a / (self.a + (self.classes - 1) * self.b)

    @property
    def homophily(self) -> float:
        """The paper's ``m = (a - b) / (a + b)``, of two classes."""
        return (self.a - self.b) / (self.a + self.b)

    def class_means(self) -> FloatArray:
        """The noise-free features of each class, ``[classes, coordinates]``."""
        signal = np.asarray(self.signal)
        if self.classes == 2:
            return np.stack([signal, -signal])
        owner = np.arange(len(signal)) % self.classes
        return np.where(owner == np.arange(self.classes)[:, None], signal, 0.0)


class GaussianNoise(NamedTuple):
    """Noise of standard deviation ``sigma`` on every coordinate."""

    sigma: float

    def __str__(self) -> str:
        return f"gaussian sigma={self.sigma:g}"


class MissingNoise(NamedTuple):
    """Each coordinate is replaced by ``N(0, tau^2)`` with probability ``rho``."""

    rho: float
    tau: float

    def __str__(self) -> str:
        return f"missing rho={self.rho:g} tau={self.tau:g}"


Noise = GaussianNoise | MissingNoise
Noises = list[GaussianNoise] | list[MissingNoise]


def standard_setting(
    coordinates: int = 16, neighbours: int = 16, **changes: float
) -> Setting:
    """Unit weights, and a signal of norm one with equal coordinates."""
    return Setting(
        (coordinates**-0.5,) * coordinates,
        (1.0,) * coordinates,
        degree=Degree.fixed(neighbours),
        **changes,  # type: ignore[arg-type]
    )
