"""The contextual stochastic block model of one target and its neighbours.

The graph itself is never built: a target with ``K`` neighbours, their labels and their
features are all that one attention layer sees.
"""

from dataclasses import dataclass
from typing import Self

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
        if count < 1:
            raise ValueError(f"a target needs at least one neighbour, got {count}")
        return cls((count,), (1.0,))

    @classmethod
    def poisson(cls, mean: float) -> Self:
        """Poisson, conditioned on more than one neighbour: the sparse block model."""
        if not mean > 0:
            raise ValueError(f"the mean degree must be positive, got {mean}")
        last = int(stats.poisson.isf(TAIL, mean)) + 2
        counts = np.arange(2, last + 1)
        return cls._normalised(counts, stats.poisson.pmf(counts, mean))

    @classmethod
    def binomial(cls, trials: int, probability: float) -> Self:
        """Binomial, conditioned on more than one neighbour: the finite block model."""
        if trials < 2 or not 0 < probability <= 1:
            raise ValueError(
                "a binomial degree above one needs at least 2 trials and a probability "
                f"in (0, 1], got {trials} and {probability}"
            )
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
    elsewhere, which keeps all classes exchangeable.

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

    def __post_init__(self) -> None:
        if len(self.signal) != len(self.weights):
            raise ValueError(
                f"signal has {len(self.signal)} coordinates and weights has "
                f"{len(self.weights)}; give one weight per coordinate"
            )
        if min(self.weights) <= 0:
            raise ValueError(f"weights must be positive, got {min(self.weights)}")
        if self.a < 0 or self.b < 0 or self.a + self.b == 0:
            raise ValueError(
                f"edge intensities must not be negative, got a={self.a}, b={self.b}"
            )
        if self.classes < 2:
            raise ValueError(f"at least two classes are needed, got {self.classes}")
        if self.classes > 2:
            uneven = len(set(self.signal)) > 1 or len(set(self.weights)) > 1
            if uneven or len(self.signal) % self.classes:
                raise ValueError(
                    f"{self.classes} classes are exchangeable only with equal signal "
                    "and weights on a number of coordinates they divide, got "
                    f"{len(self.signal)} coordinates"
                )

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


@dataclass(frozen=True)
class GaussianNoise:
    """Noise of standard deviation ``sigma`` on every coordinate."""

    sigma: float

    def __post_init__(self) -> None:
        if self.sigma < 0:
            raise ValueError(f"sigma must not be negative, got {self.sigma}")


@dataclass(frozen=True)
class MissingNoise:
    """Each coordinate is replaced by ``N(0, tau^2)`` with probability ``rho``."""

    rho: float
    tau: float

    def __post_init__(self) -> None:
        if not 0 <= self.rho <= 1:
            raise ValueError(f"rho is a probability, got {self.rho}")
        if self.tau < 0:
            raise ValueError(f"tau must not be negative, got {self.tau}")


def standard_setting(
    *,
    coordinates: int = 16,
    neighbours: int = 16,
    a: float = 3.0,
    b: float = 1.0,
    degree: Degree | None = None,
    classes: int = 2,
    self_loop: bool = False,
) -> Setting:
    """Unit weights, and a signal of norm one with equal coordinates."""
    return Setting(
        signal=(coordinates**-0.5,) * coordinates,
        weights=(1.0,) * coordinates,
        a=a,
        b=b,
        degree=degree or Degree.fixed(neighbours),
        classes=classes,
        self_loop=self_loop,
    )
