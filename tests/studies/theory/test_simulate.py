"""Simulation against closed forms, against a slow reference, and against itself."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from studies.theory.closed_forms import (
    gated_distance,
    gaussian_distance,
    one_neighbour_snr,
    ungated_distance,
    uniform_limit_snr,
)
from studies.theory.expansion import gated_logits, gaussian_logits, ungated_logits
from studies.theory.logits import simulate_logits
from studies.theory.model import (
    Degree,
    GaussianNoise,
    MissingNoise,
    Setting,
    standard_setting,
)
from studies.theory.simulate import simulate
from tempergat.stats import holm

UNGATED, GATE_FIRST, POST_GATE = range(3)
UNEVEN = Setting(
    signal=(0.5, -0.2, 0.9),
    weights=(1.0, 2.5, 0.3),
    a=2.0,
    b=1.0,
    degree=Degree.fixed(5),
)
SMALL = standard_setting(coordinates=4, neighbours=6)
SCENARIOS = {
    "plain": UNEVEN,
    "poisson": replace(UNEVEN, degree=Degree.poisson(3.0)),
    "binomial": replace(UNEVEN, degree=Degree.binomial(8, 0.5)),
    "self_loop": replace(UNEVEN, self_loop=True),
    "heterophily": replace(UNEVEN, a=1.0, b=2.0),
    "three_classes": standard_setting(coordinates=6, neighbours=4, classes=3),
}


def reference_snr(setting, noise, gate, temperature, targets, seed):
    """The paper's SNR, target by target, both classes drawn, in plain numpy.

    Returns the SNR and its standard error from ten parts of the sample.
    """
    random = np.random.default_rng(seed)
    means = setting.class_means()
    weights = np.asarray(setting.weights)
    same = setting.same_class_probability
    scores = {0: [], 1: []}

    def observe(label):
        if isinstance(noise, GaussianNoise):
            return means[label] + noise.sigma * random.standard_normal(len(weights))
        seen = random.random(len(weights)) >= noise.rho
        filled = 0.0 if gate else noise.tau * random.standard_normal(len(weights))
        return np.where(seen, means[label], filled)

    for number in range(targets):
        label = number % 2
        count = random.choice(setting.degree.counts, p=setting.degree.probabilities)
        others = [c for c in range(setting.classes) if c != label]
        labels = [
            label if random.random() < same else others[random.integers(len(others))]
            for _ in range(count)
        ]
        own = observe(label)
        features = [observe(c) for c in labels]
        if setting.self_loop:
            labels.append(label)
            features.append(own)
        logit = -np.abs(own - np.array(features)) @ weights / temperature
        share = np.exp(logit - logit.max())
        share /= share.sum()
        sign = [{0: 1.0, 1: -1.0}.get(int(c), 0.0) for c in labels]
        scores[label].append(share @ sign)

    def snr(first, second):
        return (first.mean() - second.mean()) / np.sqrt(first.var() + second.var())

    first, second = np.array(scores[0]), np.array(scores[1])
    parts = [
        snr(*pair)
        for pair in zip(np.split(first, 10), np.split(second, 10), strict=True)
    ]
    return snr(first, second), np.std(parts, ddof=1) / np.sqrt(10)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_fast_simulation_agrees_with_a_slow_one_of_both_classes(scenario):
    setting, temperature, targets = SCENARIOS[scenario], 0.8, 4000
    cases = [
        (GaussianNoise(0.6), 0, False),
        (MissingNoise(0.4, 0.7), UNGATED, False),
        (MissingNoise(0.4, 0.7), GATE_FIRST, True),
    ]
    scores = []
    for number, (noise, variant, gate) in enumerate(cases):
        slow, error = reference_snr(setting, noise, gate, temperature, targets, number)
        fast = simulate(setting, [noise], [temperature], targets=40_000, seed=7).snr()
        fast_error = fast.standard_error[0, variant, 0]
        difference = fast.value[0, variant, 0] - slow
        scores.append(abs(difference) / np.hypot(error, fast_error))
    # Ten parts give the error nine degrees of freedom; all scenarios are one family.
    allowed = stats.t.isf(0.001 / 2 / (len(cases) * len(SCENARIOS)), 9)
    assert max(scores) < allowed


def test_uniform_attention_has_its_closed_form_everywhere():
    p_values = []
    for number, setting in enumerate(SCENARIOS.values()):
        noises = [GaussianNoise(0.3), GaussianNoise(3.0)]
        snr = simulate(setting, noises, [np.inf], targets=60_000, seed=number).snr()
        assert np.array_equal(snr.value[0], snr.value[1])
        p_values.append(snr.p_values(uniform_limit_snr(setting))[0, 0, 0])
    assert min(holm(p_values)) > 0.001


MISSING = [MissingNoise(rho, tau) for rho in (0.2, 0.5, 0.8) for tau in (0.1, 1, 4)]
GAUSSIAN = [GaussianNoise(sigma) for sigma in (0.2, 1.0, 5.0)]


@pytest.mark.parametrize(
    ("noises", "variant", "distances", "logits"),
    [
        (MISSING, UNGATED, ungated_distance, ungated_logits),
        (MISSING, GATE_FIRST, gated_distance, gated_logits),
        (GAUSSIAN, 0, gaussian_distance, gaussian_logits),
    ],
    ids=["ungated", "gated", "gaussian"],
)
def test_logit_moments_have_their_closed_forms(noises, variant, distances, logits):
    sample = simulate_logits(UNEVEN, noises, targets=100_000, seed=11)
    p_values = []
    for place, noise in enumerate(noises):
        whole, given = distances(UNEVEN, noise), logits(UNEVEN, noise)
        pairs = [(sample.gap(), whole.gap), (sample.squared_gap(), given.squared_gap)]
        for other in (False, True):
            pairs += [
                (sample.mean(other), whole.means[other]),
                (sample.variance(other), whole.variances[other]),
                (sample.neighbour_variance(other), given.variances[other]),
            ]
        p_values += [found[place, variant].p_values(exact) for found, exact in pairs]
    assert min(holm(p_values)) > 0.001


def test_result_depends_on_the_seed_and_not_on_the_threads():
    noises = [MissingNoise(0.5, 1.0)]
    one, two = (
        simulate(
            UNEVEN, noises, [1.0], targets=8000, seed=3, threads=threads
        ).means.value
        for threads in (1, 3)
    )
    assert np.array_equal(one, two)
    other = simulate(UNEVEN, noises, [1.0], targets=8000, seed=4).means.value
    assert not np.array_equal(one, other)


def test_a_gate_after_attention_leaves_the_label_score_as_it_was():
    simulation = simulate(
        UNEVEN, [MissingNoise(0.5, 2.0)], [0.5, 2.0], targets=8000, seed=1, readout=True
    )
    snr, readout = simulation.snr().value, simulation.readout_snr().value
    assert np.array_equal(snr[:, POST_GATE], snr[:, UNGATED])
    assert (readout[:, POST_GATE] != readout[:, UNGATED]).all()


def test_single_neighbour_is_reached_as_t_vanishes_only_after_the_noise_is_infinite():
    single = one_neighbour_snr(SMALL)
    silent = replace(SMALL, signal=(0.0,) * 4)
    temperatures = [1.0, 0.3, 0.1, 0.03, 0.001]
    after = simulate(
        silent, [GaussianNoise(1.0)], temperatures, targets=100_000, seed=4
    ).snr()[0, 0]
    assert (np.diff(after.value) < 0).all()
    assert after[-1].p_values(single) > 0.001

    before = simulate(
        SMALL, [GaussianNoise(0.5)], temperatures, targets=100_000, seed=4
    ).snr()[0, 0]
    low, _ = before[-1].interval(0.999)
    assert low > 1.5 * single


def test_an_snr_that_rounding_hides_is_infinite_with_its_interval():
    looped = replace(SMALL, self_loop=True)
    snr = simulate(
        looped, [GaussianNoise(4.0)], [1e-4, np.inf], targets=20_000, seed=6
    ).snr()[0, 0]
    low, high = snr.interval()
    assert (snr.value[0], low[0], high[0]) == (np.inf,) * 3
    assert np.isfinite([snr.value[1], low[1], high[1]]).all()


def test_under_heterophily_clean_features_make_sharp_attention_the_better():
    mixed = standard_setting(a=1.0, b=3.0)
    snr = simulate(
        mixed, [GaussianNoise(0.2)], [0.5, np.inf], targets=20_000, seed=8
    ).snr()[0, 0]
    # It finds the few neighbours of the same class, so the sign is turned.
    assert snr.value[0] > 1.5 * -snr.value[1] > 0
