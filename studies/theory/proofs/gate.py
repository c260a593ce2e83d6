"""The steps of the proof of Theorem 2, in the order of the paper's appendix."""

import numpy as np

from studies.theory.closed_forms import (
    gated_distance,
    gated_variance_bound,
    logit_gap,
    mean_absolute,
    mean_absolute_difference,
    ungated_distance,
    ungated_variance_bound,
)
from studies.theory.expansion import (
    gate_advantage,
    gated_logits,
    ungated_logits,
    weak_logit_boundary,
)
from studies.theory.logits import LogitSample, simulate_logits
from studies.theory.model import MissingNoise, Setting
from studies.theory.neighbourhood import BLOCK, GATE_FIRST, UNGATED
from studies.theory.proofs.check import Statement, Step
from studies.theory.simulate import simulate
from tempergat.stats import Estimate, resampled_means

RHOS = (0.2, 0.5, 0.8)
TAUS = (0.1, 0.5, 2.0)
EXPANSION_TEMPERATURES = (4.0, 8.0, 16.0, 32.0, 64.0)


def gate_steps(
    setting: Setting, *, targets: int, seed: int, threads: int = 2
) -> list[Step]:
    """The proof of Theorem 2."""
    noises = [MissingNoise(rho, tau) for rho in RHOS for tau in TAUS]
    names = [f"rho={noise.rho:g} tau={noise.tau:g}" for noise in noises]
    sample = simulate_logits(
        setting, noises, targets=targets, seed=seed, threads=threads
    )
    steps = _normal_steps(setting, targets, seed)
    for n, (noise, at) in enumerate(zip(noises, names, strict=True)):
        exact = (ungated_distance(setting, noise), gated_distance(setting, noise))
        for variant, label in enumerate(("ungated", "oracle gate")):
            number = "2.3" if variant == 0 else "2.4"
            moments = exact[variant]
            for other, kind in ((False, "same class"), (True, "other class")):
                mean = moments.other_mean if other else moments.same_mean
                variance = moments.other_variance if other else moments.same_variance
                steps.append(
                    Statement(2, number, f"mean distance, {label}, {kind}").equal(
                        at, sample.mean(other)[n, variant], mean
                    )
                )
                seen = sample.variance(other)[n, variant]
                steps.append(
                    Statement(2, "2.6", f"logit variance, {label}, {kind}").equal(
                        at, seen, variance
                    )
                )
                if variant == 0:
                    bound = ungated_variance_bound(setting, noise)
                    statement = Statement(
                        2, "2.7", f"variance at least its bound, {kind}"
                    )
                    steps.append(statement.at_least(at, seen, bound))
                else:
                    bound = gated_variance_bound(setting)
                    statement = Statement(
                        2, "2.7", f"gated variance at most C_g, {kind}"
                    )
                    steps.append(statement.at_most(at, seen, bound))
            steps.append(
                Statement(2, "2.5", f"logit gap 2 (1-rho)^2 sum w|mu|, {label}").equal(
                    at, sample.gap()[n, variant], logit_gap(setting, noise.rho)
                )
            )
        steps += _neighbour_steps(setting, noise, at, sample, n)
    return steps + _weak_steps(setting, targets, seed, threads)


def _normal_steps(setting: Setting, targets: int, seed: int) -> list[Step]:
    """The two integrals and the variance of a difference of fill-in values."""
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7,)))
    draws = random.standard_normal((2, -(-targets // BLOCK), BLOCK))
    steps: list[Step] = []
    size = float(np.max(np.abs(setting.signal)))
    for tau in TAUS:
        for shift in (0.0, size, 4 * size):
            away = np.abs(shift - tau * draws[0]).sum(axis=1)
            steps.append(
                Statement(2, "2.1", "A_tau(t) = E|t - xi|").equal(
                    f"tau={tau:g} t={shift:g}",
                    resampled_means(away, BLOCK, seed),
                    float(mean_absolute(shift, tau)),
                )
            )
        apart = tau * np.abs(draws[0] - draws[1])
        sums = np.stack([apart.sum(axis=1), (apart**2).sum(axis=1)], axis=1)
        means = resampled_means(sums, BLOCK, seed)
        steps.append(
            Statement(2, "2.2", "B_tau = 2 tau / sqrt(pi)").equal(
                f"tau={tau:g}", means[0], mean_absolute_difference(tau)
            )
        )
        steps.append(
            Statement(2, "2.2", "Var|xi_1 - xi_2| = 2 (1 - 2/pi) tau^2").equal(
                f"tau={tau:g}",
                means[1] - means[0].square(),
                2 * (1 - 2 / np.pi) * tau**2,
            )
        )
    return steps


def _neighbour_steps(
    setting: Setting, noise: MissingNoise, at: str, sample: LogitSample, level: int
) -> list[Step]:
    """Moments given the target, which the paper's proof needs but does not state."""
    steps: list[Step] = []
    exact = (ungated_logits(setting, noise), gated_logits(setting, noise))
    for variant, label in enumerate(("ungated", "oracle gate")):
        moments = exact[variant]
        for other, kind in ((False, "same class"), (True, "other class")):
            expected = moments.other_variance if other else moments.same_variance
            steps.append(
                Statement(
                    2, "2.8", f"variance among neighbours, {label}, {kind}"
                ).equal(at, sample.neighbour_variance(other)[level, variant], expected)
            )
        steps.append(
            Statement(2, "2.8", f"mean squared gap over targets, {label}").equal(
                at, sample.squared_gap()[level, variant], moments.squared_gap
            )
        )
    return steps


def _weak_steps(setting: Setting, targets: int, seed: int, threads: int) -> list[Step]:
    """The expansion of the softmax, and the conclusion that follows from it."""
    steps = _expansion_steps(setting, seed)
    rho = 0.5
    size = float(np.max(np.abs(setting.signal)))
    boundary = weak_logit_boundary(setting, rho)
    noises = [MissingNoise(rho, tau) for tau in (boundary / 2, 4 * size, 8 * size)]
    temperatures = (1.0, 4.0, 16.0, 64.0)
    simulation = simulate(
        setting, noises, temperatures, targets=targets, seed=seed, threads=threads
    )
    snr = simulation.snr()
    gain = snr[:, GATE_FIRST] - snr[:, UNGATED]
    names = [f"T={temperature:g}" for temperature in temperatures]
    for level, noise in enumerate(noises[1:], start=1):
        at = f"rho={rho:g} tau={noise.tau:g}"
        scaled = gain[level].scaled(np.array(temperatures))
        statement = Statement(2, "2.10", f"gain times T goes to 0 as T grows, {at}")
        steps += statement.approach(names, scaled, 0.0)
        statement = Statement(2, "2.10", "gain times T^2 is its closed form")
        steps.append(
            statement.equal(
                f"{at} {names[-1]}",
                gain[level, -1].scaled(temperatures[-1] ** 2),
                gate_advantage(setting, noise),
            )
        )
        statement = Statement(2, "2.11", "the oracle gate raises the SNR at large tau")
        # At the last temperature the gain is smaller than the sampling error.
        steps += [
            statement.above(f"{at} {name}", gain[level, n])
            for n, name in enumerate(names[:-1])
        ]
    statement = Statement(2, "2.12", "and lowers it at small tau")
    at = f"rho={rho:g} tau={noises[0].tau:.3g} T=1"
    steps.append(statement.above(at, gain[0, 0].scaled(-1)))
    return steps


def _expansion_steps(setting: Setting, seed: int) -> list[Step]:
    """The remainder after the first order falls as 1/T^2."""
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(8,)))
    count, coordinates = setting.degree.counts[0], len(setting.signal)
    logit = -np.abs(random.standard_normal((200, BLOCK, count, coordinates))).sum(-1)
    logit -= logit.mean(axis=-1, keepdims=True)
    remainders = []
    for temperature in EXPANSION_TEMPERATURES:
        share = np.exp(logit / temperature)
        share /= share.sum(axis=-1, keepdims=True)
        first = (1 + logit / temperature) / count
        remainders.append(np.abs(share - first).max(axis=-1).sum(axis=1))
    means = resampled_means(np.stack(remainders, axis=1), BLOCK, seed)
    order = Estimate(
        np.log2(means.value[:-1] / means.value[1:]),
        np.log2(means.replicates[:, :-1] / means.replicates[:, 1:]),
    )
    statement = Statement(2, "2.9", "order in 1/T of the softmax remainder goes to 2")
    names = [f"T={temperature:g}" for temperature in EXPANSION_TEMPERATURES[1:]]
    return statement.approach(names, order, 2.0)
