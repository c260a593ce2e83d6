"""Simulation against closed forms, against a slow reference, and against itself."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from studies.theory.closed_forms import (
    gated_distance,
    gaussian_distance,
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


def test_logit_moments_have_their_closed_forms_over_the_grid():
    noises = [MissingNoise(rho, tau) for rho in (0.2, 0.5, 0.8) for tau in (0.1, 1, 4)]
    sample = simulate_logits(UNEVEN, noises, targets=100_000, seed=11)
    p_values = []
    for place, noise in enumerate(noises):
        for variant, distances, logits in (
            (UNGATED, ungated_distance, ungated_logits),
            (GATE_FIRST, gated_distance, gated_logits),
        ):
            whole, given = distances(UNEVEN, noise), logits(UNEVEN, noise)
            for estimate, expected in (
                (sample.mean(other=False), whole.same_mean),
                (sample.mean(other=True), whole.other_mean),
                (sample.variance(other=False), whole.same_variance),
                (sample.variance(other=True), whole.other_variance),
                (sample.gap(), whole.gap),
                (sample.neighbour_variance(other=False), given.same_variance),
                (sample.neighbour_variance(other=True), given.other_variance),
                (sample.squared_gap(), given.squared_gap),
            ):
                p_values.append(estimate[place, variant].p_values(expected))
    assert min(holm(p_values)) > 0.001


def test_gaussian_logit_moments_have_their_closed_forms():
    noises = [GaussianNoise(sigma) for sigma in (0.2, 1.0, 5.0)]
    sample = simulate_logits(UNEVEN, noises, targets=100_000, seed=12)
    p_values = []
    for place, noise in enumerate(noises):
        whole, given = gaussian_distance(UNEVEN, noise), gaussian_logits(UNEVEN, noise)
        for estimate, expected in (
            (sample.mean(other=False), whole.same_mean),
            (sample.variance(other=True), whole.other_variance),
            (sample.gap(), whole.gap),
            (sample.neighbour_variance(other=False), given.same_variance),
            (sample.neighbour_variance(other=True), given.other_variance),
            (sample.squared_gap(), given.squared_gap),
        ):
            p_values.append(estimate[place, 0].p_values(expected))
    assert min(holm(p_values)) > 0.001


def test_concentration_never_falls_below_uniform():
    noises = [GaussianNoise(sigma) for sigma in (0.1, 1.0, 10.0)]
    simulation = simulate(UNEVEN, noises, [0.01, 1.0, 100.0], targets=4000, seed=0)
    assert (simulation.concentration().value >= 1 / 5).all()
    assert (simulation.concentration().value <= 1).all()


def test_result_depends_on_the_seed_and_not_on_the_threads():
    noises = [MissingNoise(0.5, 1.0)]
    one, two = (
        simulate(UNEVEN, noises, [1.0], targets=8000, seed=3, threads=threads).sums
        for threads in (1, 3)
    )
    assert np.array_equal(one, two)
    other = simulate(UNEVEN, noises, [1.0], targets=8000, seed=4).sums
    assert not np.array_equal(one, other)


def test_more_targets_begin_with_the_fewer():
    few, many = (
        simulate(UNEVEN, [GaussianNoise(1.0)], [1.0], targets=n, seed=3).sums
        for n in (2000, 6000)
    )
    assert np.array_equal(few, many[: len(few)])


def test_a_gate_after_attention_leaves_the_label_score_as_it_was():
    simulation = simulate(
        UNEVEN, [MissingNoise(0.5, 2.0)], [0.5, 2.0], targets=8000, seed=1, readout=True
    )
    snr, readout = simulation.snr().value, simulation.readout_snr().value
    assert np.array_equal(snr[:, POST_GATE], snr[:, UNGATED])
    assert (readout[:, POST_GATE] != readout[:, UNGATED]).all()


def test_fill_in_values_of_zero_make_the_gate_superfluous():
    simulation = simulate(
        UNEVEN, [MissingNoise(0.5, 0.0)], [1.0], targets=4000, seed=1, readout=True
    )
    snr, readout = simulation.snr().value, simulation.readout_snr().value
    assert snr[0, GATE_FIRST] == snr[0, UNGATED]
    assert readout[0, GATE_FIRST] == readout[0, UNGATED]


def test_gated_snr_does_not_see_the_fill_in_noise():
    noises = [MissingNoise(0.5, tau) for tau in (0.1, 100.0)]
    snr = simulate(UNEVEN, noises, [1.0], targets=4000, seed=1).snr().value
    assert snr[0, GATE_FIRST] == snr[1, GATE_FIRST]
    assert snr[0, UNGATED] > snr[1, UNGATED]


def test_only_logits_over_temperature_matter():
    halved = replace(UNEVEN, weights=tuple(w / 2 for w in UNEVEN.weights))
    noises = [GaussianNoise(0.7)]
    whole = simulate(UNEVEN, noises, [1.0], targets=4000, seed=2).snr().value
    half = simulate(halved, noises, [0.5], targets=4000, seed=2).snr().value
    assert half == pytest.approx(whole, rel=1e-5)


def test_simulation_refuses_what_it_cannot_draw():
    with pytest.raises(ValueError, match="positive, got 0"):
        simulate(UNEVEN, [GaussianNoise(1.0)], [0.0], targets=10, seed=0)
    with pytest.raises(ValueError, match="all gaussian or all missing"):
        simulate(
            UNEVEN,
            [GaussianNoise(1.0), MissingNoise(0.5, 1.0)],
            [1.0],
            targets=10,
            seed=0,
        )


def test_snr_of_two_neighbours_at_a_finite_temperature_is_its_integral():
    mu, sigma, weight, temperature = 0.6, 0.7, 1.4, 0.5
    setting = Setting((mu,), (weight,), a=3.0, b=1.0, degree=Degree.fixed(2))
    grid, step = np.linspace(-6, 6, 241, retstep=True)
    mass = stats.norm.pdf(grid) * step
    own = mu + sigma * grid[:, None]
    same, other = (
        -weight * np.abs(own - (label * mu + sigma * grid)) for label in (1, -1)
    )
    # With one neighbour of each label the score is the difference of their shares.
    apart = np.tanh((same[:, :, None] - other[:, None, :]) / (2 * temperature))
    mixed, mixed_square = (
        mass @ np.einsum("ijk,j,k->i", power, mass, mass) for power in (apart, apart**2)
    )
    p = 0.75
    mean = p**2 - (1 - p) ** 2 + 2 * p * (1 - p) * mixed
    square = p**2 + (1 - p) ** 2 + 2 * p * (1 - p) * mixed_square
    exact = mean * np.sqrt(2 / (square - mean**2))
    snr = simulate(
        setting, [GaussianNoise(sigma)], [temperature], targets=200_000, seed=21
    ).snr()[0, 0, 0]
    assert snr.p_values(exact) > 0.001
    assert snr.standard_error < 0.01 * exact
