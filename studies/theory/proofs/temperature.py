"""The steps of the proof of Theorem 1, in the order of the paper's appendix."""

from dataclasses import replace

import numpy as np

from studies.theory.bootstrap import Estimate
from studies.theory.closed_forms import (
    gaussian_distance,
    one_neighbour_snr,
    uniform_limit_snr,
)
from studies.theory.expansion import expansion, gaussian_logits
from studies.theory.logits import simulate_logits
from studies.theory.model import GaussianNoise, Setting
from studies.theory.proofs.check import Statement
from studies.theory.rows import Table
from studies.theory.simulate import simulate

SIGMAS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
RATIOS = (0.25, 1.0, 4.0, 16.0, 64.0)


def temperature_steps(setting: Setting, *, targets: int, seed: int) -> Table:
    """The proof of Theorem 1."""
    noises = [GaussianNoise(sigma) for sigma in SIGMAS]
    names = [f"sigma={sigma:g}" for sigma in SIGMAS]
    logits = simulate_logits(setting, noises, targets=targets, seed=seed)
    temperatures = (1.0, *(float(2**power) for power in range(2, 13)), np.inf)
    simulation = simulate(setting, noises, temperatures, targets=targets, seed=seed)
    snr, mean = simulation.snr()[:, 0], simulation.mean_score()[:, 0]
    variance, focus = simulation.variance()[:, 0], simulation.concentration()[:, 0]
    count, homophily = setting.degree.counts[0], setting.homophily
    steps: Table = []

    step = Statement(1, "1.1", "the best T is at least as good as T = 1 (by inclusion)")
    gain = Estimate(
        snr.value.max(axis=1) - snr.value[:, 0],
        snr.replicates.max(axis=2) - snr.replicates[:, :, 0],
    )
    steps += [step.at_least(at, gain[n], 0.0) for n, at in enumerate(names)]

    gap = logits.gap()[:, 0]
    for n, (noise, at) in enumerate(zip(noises, names, strict=True)):
        exact = gaussian_distance(setting, noise)
        step = Statement(1, "1.2", "mean logit gap, Gaussian noise")
        steps.append(step.equal(at, gap[n], exact.gap))
        for other, label in enumerate(("same class", "other class")):
            step = Statement(1, "1.2", f"logit variance, {label}")
            seen = logits.variance(bool(other))[n, 0]
            steps.append(step.equal(at, seen, exact.variances[other]))
    step = Statement(1, "1.2", "gap over standard deviation goes to 0: blind attention")
    deviation = logits.variance(other=False)[:, 0].root()
    steps += step.approach(names, gap / deviation, 0.0)

    step = Statement(1, "1.3", "E[R] at T = 1 goes to m as sigma grows")
    steps += step.approach(names, mean[:, 0], homophily)

    step = Statement(1, "1.4", "Var(R) / ((1 - m^2) E[sum alpha^2]) goes to 1 at T = 1")
    blind = focus[:, 0].scaled(1 - homophily**2)
    steps += step.approach(names, variance[:, 0] / blind, 1.0)

    step = Statement(1, "1.5", "E[sum alpha^2] is at least 1/K")
    steps += [
        step.at_least(f"{at} T={temperature:g}", focus[n, m], 1 / count)
        for n, at in enumerate(names)
        for m, temperature in enumerate(temperatures[:-1])
    ]
    step = Statement(1, "1.6", "attention at T = 1 goes to a single neighbour")
    steps += step.approach(names, focus[:, 0], 1.0)
    step = Statement(1, "1.7", "attention becomes uniform as T grows, sigma = 4")
    path = [f"T={temperature:g}" for temperature in temperatures[:-1]]
    steps += step.approach(path, focus[SIGMAS.index(4.0), :-1], 1 / count)
    step = Statement(1, "1.8", "SNR at T = inf is m sqrt(2K/(1-m^2)) for every sigma")
    steps.append(step.equal("every sigma", snr[0, -1], uniform_limit_snr(setting)))
    step = Statement(1, "1.8", "SNR at T = 1 goes to the one-neighbour value")
    steps += step.approach(names, snr[:, 0], one_neighbour_snr(setting))
    step = Statement(1, "1.8", "SNR(T = 64) exceeds SNR(1) once sigma is large")
    more = snr[:, temperatures.index(64.0)] - snr[:, 0]
    # From sigma = 1.
    steps += [step.above(at, more[n]) for n, at in enumerate(names) if n > 0]
    steps += _blind_steps(setting, targets, seed)

    step = Statement(1, "1.10", "a finite T beats T = inf: slope in 1/T is positive")
    for n, noise in enumerate(noises[:4]):
        terms = expansion(setting, gaussian_logits(setting, noise))
        # The one nearest to the best of the second order.
        best = max(-2 * terms.second, 1e-9) / terms.first
        finite = np.array(temperatures[1:-1])
        m = 1 + int(np.argmin(np.abs(np.log(finite / best))))
        at = f"{names[n]} T={temperatures[m]:g}"
        steps.append(step.above(at, snr[n, m] - snr[n, -1]))
    return steps


def _blind_steps(setting: Setting, targets: int, seed: int) -> Table:
    """Attention without any class signal: the limit of infinite noise itself."""
    silent = replace(setting, signal=(0.0,) * len(setting.signal))
    temperatures = (1e-4, *RATIOS)
    simulation = simulate(
        silent, [GaussianNoise(1.0)], temperatures, targets=targets, seed=seed
    )
    snr, focus = simulation.snr()[0, 0], simulation.concentration()[0, 0].root()
    single = one_neighbour_snr(setting)
    claim = "sigma = inf: SNR is the one-neighbour value as T goes to 0"
    steps = [Statement(1, "1.9", claim).equal("T/sigma=0.0001", snr[0], single)]
    claim = "sigma = inf: SNR sqrt(E[sum alpha^2]) is the same for all T"
    for n, ratio in enumerate(RATIOS, start=1):
        at, seen = f"T/sigma={ratio:g}", snr[n] * focus[n]
        steps.append(Statement(1, "1.9", claim).equal(at, seen, single))
    return steps
