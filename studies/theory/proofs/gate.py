"""The steps of the proof of Theorem 2, in the order of the paper's appendix."""

import numpy as np

from studies.theory.bootstrap import Estimate, resampled_means
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
from studies.theory.proofs.check import Statement
from studies.theory.rows import Table
from studies.theory.simulate import simulate

RHOS = (0.2, 0.5, 0.8)
TAUS = (0.1, 0.5, 2.0)
LABELS = ("ungated", "oracle gate")
KINDS = ("same class", "other class")
EXPANSION_TEMPERATURES = (4.0, 8.0, 16.0, 32.0, 64.0)


def gate_steps(setting: Setting, *, targets: int, seed: int) -> Table:
    """The proof of Theorem 2."""
    noises = [MissingNoise(rho, tau) for rho in RHOS for tau in TAUS]
    sample = simulate_logits(setting, noises, targets=targets, seed=seed)
    steps = _normal_steps(setting, targets, seed)
    for n, noise in enumerate(noises):
        at = f"rho={noise.rho:g} tau={noise.tau:g}"
        exact = (ungated_distance(setting, noise), gated_distance(setting, noise))
        for variant, label in enumerate(LABELS):
            for other, kind in enumerate(KINDS):
                claim = f"mean distance, {label}, {kind}"
                seen = sample.mean(bool(other))[n, variant]
                step = Statement(2, ("2.3", "2.4")[variant], claim)
                steps.append(step.equal(at, seen, exact[variant].means[other]))
                claim = f"logit variance, {label}, {kind}"
                seen = sample.variance(bool(other))[n, variant]
                variance = exact[variant].variances[other]
                steps.append(Statement(2, "2.6", claim).equal(at, seen, variance))
                if variant == UNGATED:
                    step = Statement(2, "2.7", f"variance at least its bound, {kind}")
                    bound = ungated_variance_bound(setting, noise)
                    steps.append(step.at_least(at, seen, bound))
                else:
                    step = Statement(2, "2.7", f"gated variance at most C_g, {kind}")
                    bound = gated_variance_bound(setting)
                    steps.append(step.at_most(at, seen, bound))
            step = Statement(2, "2.5", f"logit gap 2 (1-rho)^2 sum w|mu|, {label}")
            gap = logit_gap(setting, noise.rho)
            steps.append(step.equal(at, sample.gap()[n, variant], gap))
        steps += _neighbour_steps(setting, noise, at, sample, n)
    return steps + _weak_steps(setting, targets, seed)


def _normal_steps(setting: Setting, targets: int, seed: int) -> Table:
    """The two integrals and the variance of a difference of fill-in values."""
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7,)))
    draws = random.standard_normal((2, -(-targets // BLOCK), BLOCK))
    steps: Table = []
    size = float(np.max(np.abs(setting.signal)))
    for tau in TAUS:
        step = Statement(2, "2.1", "A_tau(t) = E|t - xi|")
        for shift in (0.0, size, 4 * size):
            away = np.abs(shift - tau * draws[0]).sum(axis=1)
            seen, exact = resampled_means(away, BLOCK, seed), mean_absolute(shift, tau)
            steps.append(step.equal(f"tau={tau:g} t={shift:g}", seen, float(exact)))
        apart = tau * np.abs(draws[0] - draws[1])
        sums = np.stack([apart.sum(axis=1), (apart**2).sum(axis=1)], axis=1)
        means = resampled_means(sums, BLOCK, seed)
        step = Statement(2, "2.2", "B_tau = 2 tau / sqrt(pi)")
        mean = mean_absolute_difference(tau)
        steps.append(step.equal(f"tau={tau:g}", means[0], mean))
        step = Statement(2, "2.2", "Var|xi_1 - xi_2| = 2 (1 - 2/pi) tau^2")
        variance = 2 * (1 - 2 / np.pi) * tau**2
        seen = means[1] - means[0].square()
        steps.append(step.equal(f"tau={tau:g}", seen, variance))
    return steps


def _neighbour_steps(
    setting: Setting, noise: MissingNoise, at: str, sample: LogitSample, level: int
) -> Table:
    """Moments given the target, which the paper's proof needs but does not state."""
    steps: Table = []
    exact = (ungated_logits(setting, noise), gated_logits(setting, noise))
    for variant, label in enumerate(LABELS):
        for other, kind in enumerate(KINDS):
            step = Statement(2, "2.8", f"variance among neighbours, {label}, {kind}")
            seen = sample.neighbour_variance(bool(other))[level, variant]
            steps.append(step.equal(at, seen, exact[variant].variances[other]))
        step = Statement(2, "2.8", f"mean squared gap over targets, {label}")
        seen = sample.squared_gap()[level, variant]
        steps.append(step.equal(at, seen, exact[variant].squared_gap))
    return steps


def _weak_steps(setting: Setting, targets: int, seed: int) -> Table:
    """The expansion of the softmax, and the conclusion that follows from it."""
    steps = _expansion_steps(setting, seed)
    rho = 0.5
    size = float(np.max(np.abs(setting.signal)))
    boundary = weak_logit_boundary(setting, rho)
    noises = [MissingNoise(rho, tau) for tau in (boundary / 2, 4 * size, 8 * size)]
    temperatures = (1.0, 4.0, 16.0, 64.0)
    simulation = simulate(setting, noises, temperatures, targets=targets, seed=seed)
    snr = simulation.snr()
    gain = snr[:, GATE_FIRST] - snr[:, UNGATED]
    names = [f"T={temperature:g}" for temperature in temperatures]
    for level, noise in enumerate(noises[1:], start=1):
        at = f"rho={rho:g} tau={noise.tau:g}"
        step = Statement(2, "2.10", f"gain times T goes to 0 as T grows, {at}")
        steps += step.approach(names, gain[level].scaled(np.array(temperatures)), 0.0)
        step = Statement(2, "2.10", "gain times T^2 is its closed form")
        seen = gain[level, -1].scaled(temperatures[-1] ** 2)
        exact = gate_advantage(setting, noise)
        steps.append(step.equal(f"{at} {names[-1]}", seen, exact))
        step = Statement(2, "2.11", "the oracle gate raises the SNR at large tau")
        # At the last temperature the gain is smaller than the sampling error.
        for n, name in enumerate(names[:-1]):
            steps.append(step.above(f"{at} {name}", gain[level, n]))
    at = f"rho={rho:g} tau={noises[0].tau:.3g} T=1"
    step = Statement(2, "2.12", "and lowers it at small tau")
    return [*steps, step.above(at, gain[0, 0].scaled(-1))]


def _expansion_steps(setting: Setting, seed: int) -> Table:
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
    step = Statement(2, "2.9", "order in 1/T of the softmax remainder goes to 2")
    names = [f"T={temperature:g}" for temperature in EXPANSION_TEMPERATURES[1:]]
    return step.approach(names, order, 2.0)
