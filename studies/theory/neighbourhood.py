"""A chunk of simulated targets with their neighbours' labels, distances and messages.

Arrays have the shape ``[neighbours, targets]``, so a sum over neighbours adds whole
rows. Features are made one coordinate at a time, which saves memory.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from studies.theory.model import FloatArray, GaussianNoise, MissingNoise, Noise, Setting

Single = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.int8]

BLOCK = 500
CHUNK = 4 * BLOCK
GAUSSIAN_VARIANTS = ("plain",)
MISSING_VARIANTS = ("ungated", "gate_first", "post_gate")
UNGATED, GATE_FIRST, POST_GATE = range(3)


class Attended(NamedTuple):
    """The distances that give one variant's attention, and what it aggregates.

    Messages are features along the line between the class means.
    """

    distance: Single
    message: Single
    own_message: Single


def run_chunks(
    chunk: Callable[[np.random.Generator], FloatArray],
    targets: int,
    seed: int,
    threads: int,
) -> FloatArray:
    """The block sums that `chunk` gives; the same for any number of threads."""

    def numbered(number: int) -> FloatArray:
        sequence = np.random.SeedSequence(seed, spawn_key=(number,))
        return chunk(np.random.Generator(np.random.SFC64(sequence)))

    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(numbered, range(-(-targets // CHUNK)))))


def block_sums(*columns: Single | FloatArray) -> FloatArray:
    """Sums over the chunk's blocks of targets, ``[blocks, columns]``."""
    sums = [c.reshape(-1, BLOCK).sum(axis=1, dtype=np.float64) for c in columns]
    return np.stack(sums, axis=-1)


def draw_degrees(setting: Setting, random: np.random.Generator) -> Mask:
    """Which neighbour slots are filled, ``[slots, targets]``."""
    counts = np.asarray(setting.degree.counts)
    steps = np.cumsum(setting.degree.probabilities)[:-1]
    count = counts[np.searchsorted(steps, random.random(CHUNK), side="right")]
    return np.asarray(np.arange(count.max())[:, None] < count)


def draw_labels(setting: Setting, random: np.random.Generator, slots: int) -> Labels:
    """Labels of the neighbours of targets of class 0."""
    same, others = setting.same_class_probability, setting.classes - 1
    uniform = random.random((slots, CHUNK))
    other = 1 + np.floor((uniform - same) / (1 - same) * others)
    return np.where(uniform < same, 0, np.minimum(other, others)).astype(np.int8)


class Chunk:
    """Standard normals and uniforms of one chunk, reused for every noise."""

    def __init__(
        self,
        setting: Setting,
        labels: Labels,
        random: np.random.Generator,
        *,
        masks: bool,
        messages: bool,
    ) -> None:
        """Draw them; `masks` if coordinates can be missing."""
        self.labels = labels
        self.messages = messages
        self.weights = np.asarray(setting.weights, np.float32)
        self.means = setting.class_means().astype(np.float32)
        self.direction = self.means[0] - self.means[1]
        shape = (len(self.weights), *labels.shape)
        own_shape = (len(self.weights), CHUNK)
        self.normal = random.standard_normal(shape, np.float32)
        self.own_normal = random.standard_normal(own_shape, np.float32)
        if masks:
            self.uniform = random.random(shape, np.float32)
            self.own_uniform = random.random(own_shape, np.float32)

    def attended(self, noise: Noise) -> list[Attended]:
        """Distances and messages of every variant under a noise."""
        if isinstance(noise, GaussianNoise):
            return self._gaussian(noise)
        return self._missing(noise)

    def _blank(self) -> Attended:
        shape = self.labels.shape
        zeros = [np.zeros(s, np.float32) for s in (shape, shape, CHUNK)]
        return Attended(*zeros)

    def _gaussian(self, noise: GaussianNoise) -> list[Attended]:
        sigma = np.float32(noise.sigma)
        plain = self._blank()
        for position in range(len(self.weights)):
            mean = self.means[:, position]
            feature = self.normal[position] * sigma
            feature += mean[self.labels]
            own = self.own_normal[position] * sigma
            own += mean[0]
            self._add_message(plain, position, feature, own)
            self._add_distance(plain, position, feature, own)
        return [plain]

    def _missing(self, noise: MissingNoise) -> list[Attended]:
        tau = np.float32(noise.tau)
        ungated, first, after = self._blank(), self._blank(), self._blank()
        for position in range(len(self.weights)):
            mean = self.means[:, position]
            observed = self.uniform[position] >= noise.rho
            own_observed = self.own_uniform[position] >= noise.rho
            signal = mean[self.labels]
            feature = self.normal[position] * tau
            np.copyto(feature, signal, where=observed)
            own = self.own_normal[position] * tau
            np.copyto(own, mean[0], where=own_observed)
            gated, own_gated = signal * observed, own_observed * mean[0]
            self._add_message(ungated, position, feature, own)
            self._add_message(first, position, gated, own_gated)
            if self.messages:
                # This gate belongs to the target and acts on the aggregated features.
                self._add_message(after, position, feature * own_observed, own_gated)
            self._add_distance(ungated, position, feature, own)
            self._add_distance(first, position, gated, own_gated)
        # A gate after attention does not change the logits.
        return [ungated, first, after._replace(distance=ungated.distance)]

    def _add_message(
        self, to: Attended, position: int, feature: Single, own: Single
    ) -> None:
        if self.messages:
            direction = self.direction[position]
            np.add(to.message, feature * direction, out=to.message)
            np.add(to.own_message, own * direction, out=to.own_message)

    def _add_distance(
        self, to: Attended, position: int, feature: Single, own: Single
    ) -> None:
        """Add one coordinate's weighted distance; overwrites ``feature``."""
        feature -= own
        np.abs(feature, out=feature)
        feature *= self.weights[position]
        np.add(to.distance, feature, out=to.distance)
