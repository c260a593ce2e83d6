"""The answer at the top of docs/noise.md: T, the gate, accuracy."""

from collections.abc import Sequence

from tempergat.base import listed
from tempergat.stats import Summary
from tempergat.study.noise_findings.claims import Cell, Claims, Gain, TrendClaim
from tempergat.study.noise_findings.first_study import EpochEffect, FirstGains
from tempergat.study.report import p_value, signed

# The kinds of noise, in words.
NOISE_WORDS = {"missing": "missing coordinates", "gaussian": "Gaussian noise"}
# How many of six datasets and layers, by the plan.
_GENERALLY = 4
_SEVERAL = 3


def answers(claims: Claims, first: FirstGains | None) -> tuple[str, str, str]:
    """What the second study says about T, the gate and accuracy.

    Args:
        claims: Its tests.
        first: The gains in the first study.
    """
    return (
        temperature_answer(claims),
        gate_answer(claims.gate),
        accuracy_answer(claims.gains, first),
    )


def generally_rises(claim: TrendClaim) -> bool:
    """The plan's rule for the paper's "generally increases"."""
    return claim.count("rises") >= _GENERALLY and not claim.count("falls")


def rises_on(claim: TrendClaim, datasets: Sequence[str]) -> bool:
    """Whether T rises in every layer of some datasets."""
    return all(
        cell.direction == "rises" for cell in claim.cells if cell.dataset in datasets
    )


def falls_in_several(claim: TrendClaim) -> bool:
    """The plan's rule for the paper's "tends to decrease in several ... layers"."""
    falls = claim.count("falls")
    return falls >= _SEVERAL and claim.count("rises") < falls


def falls_mostly_in_shallow_layers(claim: TrendClaim) -> bool:
    """The plan's rule for the paper's "particularly in shallow layers"."""
    falling = [cell.layer for cell in claim.cells if cell.direction == "falls"]
    return falling.count(1) > falling.count(2)


def temperature_answer(claims: Claims) -> str:
    """The sentence on T and the sharpness of attention."""
    claim = claims.temperature
    return (
        "Read at a fixed epoch, the last one, the learned temperature T rises with "
        f"Gaussian noise on the features in "
        f"{_where(claim.cells, 'rises')}"
        f'{_and_falls(claim)}: the paper\'s "generally increases" '
        f"{_holds(generally_rises(claim))}; and compared with the same methods without "
        "temperature, attention gets flatter in "
        f"{_where(claims.flatness.cells, 'rises')}."
    )


def gate_answer(claim: TrendClaim) -> str:
    """The sentence on the gate."""
    shallow = _holds(falls_mostly_in_shallow_layers(claim))
    return (
        "The mean gate falls with missing coordinates in "
        f"{_where(claim.cells, 'falls')}"
        f'{f" and rises in {n}" if (n := claim.count("rises")) else ""}: "tends to '
        f'decrease in several datasets and layers" {_holds(falls_in_several(claim))}, '
        f'"particularly in shallow layers" {shallow}.'
    )


def accuracy_answer(gains: Sequence[Gain], first: FirstGains | None) -> str:
    """The sentence on accuracy: the four tests of the plan."""
    gate_first, post, alone, gaussian = gains
    return (
        "In accuracy, with p corrected for four tests (Holm) and intervals not, under "
        "missing coordinates a gate before the attention "
        f"{gain_words(gate_first)}{_confirmed(gate_first, first)}, a gate after it "
        f"{gain_words(post)}, and a temperature alone {gain_words(alone)}; under "
        f"Gaussian noise a temperature alone {gain_words(gaussian)}."
    )


def single_methods_sentence(singles: Sequence[Gain]) -> str:
    """The single methods that differ from their backbone; empty if none does."""
    parts = []
    for noise, words in NOISE_WORDS.items():
        shown = []
        for verdict, verb in (("gains", "gain"), ("loses", "lose")):
            found = [
                f"`{gain.name}` ({signed(gain.summary.mean)})"
                for gain in singles
                if gain.noise == noise and gain.verdict == verdict
            ]
            if found:
                shown.append(f"{verb}: {listed(found, most=10)}")
        if shown:
            parts.append(f"Under {words} these {'; these '.join(shown)}.")
    if not parts:
        return ""
    return " ".join(parts)


def _confirmed(gain: Gain, first: FirstGains | None) -> str:
    if first is None:
        return ""
    words = "confirms" if gain.verdict == "gains" else "does not confirm"
    same, every = first.same_datasets[0].summary, first.all_datasets[0].summary
    return f", which {words} the first study's {signed(every.mean)}" + (
        "" if same.mean == every.mean else f" ({signed(same.mean)} on these datasets)"
    )


def first_study_answer(effects: Sequence[EpochEffect]) -> str:
    """What the first study says about T, with and without the adjustment."""
    counts = "; ".join(
        f"{e.dataset}, layer {e.layer}: {e.as_measured} and {e.adjusted} of "
        f"{e.variants}"
        for e in effects
        if e.quantity == "temperature"
    )
    return (
        "T at the selected epoch mostly says when that epoch was; how often it rises "
        f"with Gaussian noise, as measured and adjusted for the epoch: {counts}."
    )


def _where(cells: Sequence[Cell], direction: str) -> str:
    found = [cell for cell in cells if cell.direction == direction]
    if not found:
        return f"none of {len(cells)} datasets and layers"
    if len(found) == len(cells):
        return f"all {len(cells)} datasets and layers"
    names = [f"{cell.dataset} {cell.layer}" for cell in found]
    return f"{len(found)} of {len(cells)} datasets and layers ({', '.join(names)})"


def _and_falls(claim: TrendClaim) -> str:
    falls = claim.count("falls")
    return f" and falls in {_where(claim.cells, 'falls')}" if falls else ""


def _holds(is_so: bool) -> str:
    return "holds" if is_so else "does not hold"


def with_interval(summary: Summary, digits: int = 2) -> str:
    """`+0.08 [-0.28, +0.43]`."""
    return (
        f"{signed(summary.mean, digits)} [{signed(summary.low, digits)}, "
        f"{signed(summary.high, digits)}]"
    )


def gain_words(gain: Gain) -> str:
    """What the methods do to accuracy, with the numbers."""
    numbers = (
        f"{signed(gain.summary.mean)} points, {signed(gain.summary.low)} to "
        f"{signed(gain.summary.high)}, p {p_value(gain.p_holm)}"
    )
    words = {
        "gains": "gains",
        "loses": "loses",
        "no gain": "changes it by less than half a point",
        "not shown": "is not shown to gain or lose",
    }[gain.verdict]
    return f"{words} ({numbers})"
