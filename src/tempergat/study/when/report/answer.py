"""The answer at the top of docs/when.md: three sentences, each with its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from tempergat.base import joined
from tempergat.nn import BackboneName
from tempergat.study.report import signed
from tempergat.study.when.report.analysis import Across
from tempergat.study.when.report.findings import (
    ALL,
    HETEROPHILIC,
    HOMOPHILIC,
    REAL,
    Findings,
    own_path_claim,
    temperature_claim,
)
from tempergat.study.when.report.threshold import Side, sides

# The arms that are counted as gate and as residual where runs fail to train.
GATE_ALONE = ("post_gate", "temperature_post_gate")
WITH_RESIDUAL = ("residual", "post_gate_residual")


@dataclass(frozen=True)
class Paragraph:
    """A part of the answer.

    Attributes:
        sentence: What is found.
        evidence: The numbers behind it.
    """

    sentence: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.sentence} {self.evidence}".rstrip()


def answer(findings: Findings) -> list[Paragraph]:
    """Three parts: neighbours that rarely share a class, others, the temperature."""
    if not findings.tests:
        return [Paragraph("No graph has all its runs yet, so there is no answer.", "")]
    return [_rarely(findings), _often(findings), _temperature(findings)]


def _rarely(findings: Findings) -> Paragraph:
    residual = findings.tests_of(HETEROPHILIC, "residual")
    on_top = findings.tests_of(HETEROPHILIC, "post_gate_residual", "residual")
    on_top += findings.tests_of(REAL, "post_gate_residual", "residual")
    helps = "helps" if _all_better(residual) else "is not shown to help"
    adds = "is not shown to add to it"
    if on_top and all(test.is_worse or test.is_equivalent for test in on_top):
        adds = "adds nothing"
    elif _all_better(on_top):
        adds = "adds to it"
    evidence = [
        "On generated graphs whose neighbours share a class no more often than by "
        "chance, a residual gains "
        f"{_points(findings, HETEROPHILIC, 'residual', mark=True)} points "
        f"({' and '.join(findings.plan.backbones)}), the gate on the output "
        f"{_points(findings, HETEROPHILIC, 'post_gate', mark=True)}."
    ]
    below = sides(findings, "residual", is_below=True)
    gate = sides(findings, "post_gate", is_below=True)
    if below and gate:
        evidence.append(
            f"On the {len(below[0].graphs)} real graphs with adjusted homophily below "
            f"{findings.plan.rule.threshold:g} (0 is chance, 1 is always), on average "
            f"over their {len(below[0].families)} families, a residual gains "
            f"{_side_points(below)}, the gate {_side_points(gate)}. "
            f"{_all_families(findings)}"
        )
    top = _points(findings, HETEROPHILIC, "post_gate_residual", "residual")
    evidence.append(
        f"On top of a residual the gate gains {top} on these generated graphs"
        + (
            f", {_points(findings, REAL, 'post_gate_residual', 'residual')} on all "
            "real ones."
            if findings.tests_of(REAL, "post_gate_residual", "residual")
            else "."
        )
    )
    evidence.append(_claim_sentence(findings))
    return Paragraph(
        f"Where neighbours rarely share a class, a residual {helps}, and a gate on "
        f"top of it {adds}.",
        " ".join(evidence),
    )


def _all_families(findings: Findings) -> str:
    """What the plan's test over all real graphs says of the residual and the gate."""
    split = "This division of the real graphs is not in the plan"
    tests = findings.tests_of(REAL, "residual") + findings.tests_of(REAL, "post_gate")
    if not tests or any(test.is_better or test.is_worse for test in tests):
        return f"{split}."
    return (
        f"{split}, whose test over all {tests[0].graphs} families shows no gain or "
        "loss of either."
    )


def _claim_sentence(findings: Findings) -> str:
    claim = own_path_claim(findings)
    held = sum(claim.conditions.values())
    if claim.is_supported:
        verdict = "That the gate does what a residual does is supported: all"
    else:
        verdict = (
            "By the plan's standard it is not shown that the gate does what a residual "
            f"does: {held} of"
        )
    return f"{verdict} {len(claim.conditions)} conditions hold."


def _often(findings: Findings) -> Paragraph:
    helping = [
        words
        for arm, words in (("residual", "a residual"), ("post_gate", "the gate"))
        if _all_better(findings.tests_of(HOMOPHILIC, arm))
    ]
    found = f"{joined(helping)} can help" if helping else "neither helps in general"
    runs = findings.untrained["real"]
    gate, residual = runs.count(*GATE_ALONE), runs.count(*WITH_RESIDUAL)
    fails = ""
    if gate and not residual:
        fails = " With a gate and no residual, some runs fail to train."
    evidence = [
        "On generated graphs with homophily above chance a residual changes accuracy "
        f"by {_points(findings, HOMOPHILIC, 'residual')} points "
        f"({_counts(findings.tests_of(HOMOPHILIC, 'residual'))}), the gate by "
        f"{_points(findings, HOMOPHILIC, 'post_gate')}."
    ]
    above = sides(findings, "residual", is_below=False)
    above_gate = sides(findings, "post_gate", is_below=False)
    if above and above_gate:
        evidence.append(
            f"On the {len(above[0].graphs)} real graphs with adjusted homophily above "
            f"{findings.plan.rule.threshold:g}, {len(above[0].families)} families, a "
            f"residual changes it by {_side_points(above)}, the gate by "
            f"{_side_points(above_gate)}."
        )
    if not any(findings.real.values()):
        evidence.append("No real graph has all its runs yet.")
    elif gate or residual:
        evidence.append(_failures_sentence(findings))
    return Paragraph(f"Where they often do, {found}.{fails}", " ".join(evidence))


def _failures_sentence(findings: Findings) -> str:
    """How many runs failed to train on real graphs, and what that does to means."""
    runs = findings.untrained["real"]
    gate_runs, residual_runs = (
        sum(runs.runs.get(arm, 0) for arm in arms)
        for arms in (GATE_ALONE, WITH_RESIDUAL)
    )
    text = (
        f"Of the runs on real graphs, {runs.count(*GATE_ALONE)} of {gate_runs:,} with "
        "the gate on the output and no residual failed to train, and "
        f"{runs.count(*WITH_RESIDUAL) or 'none'} of {residual_runs:,} with a residual"
    )
    lowered = []
    for backbone in findings.plan.backbones:
        for graph in findings.real[backbone]:
            gain = graph.mean("post_gate") - graph.mean("plain")
            if runs.seeds((graph.graph, backbone, "post_gate")) and gain < 0.0:
                lowered.append(f"{signed(gain, 1)} on {graph.graph} ({backbone})")
    if lowered:
        text += (
            f"; because of them the gate's mean gain is {joined(lowered)}, which the "
            "tests do not count as worse"
        )
    return f"{text}."


def _temperature(findings: Findings) -> Paragraph:
    plain = _temperature_words(findings, "temperature", "plain")
    fixed = _temperature_words(findings, "fixed_norm_temperature", "fixed_norm")
    also = "the result is the same" if fixed == plain else f"a temperature {fixed}"
    evidence = (
        "The change is "
        f"{_points(findings, ALL, 'temperature', digits=2)} points over all generated "
        "graphs"
    )
    if findings.tests_of(REAL, "temperature"):
        evidence += (
            f" and {_points(findings, REAL, 'temperature', digits=2)} over real graphs"
        )
    evidence += (
        ". A plain attention vector can do the same as a temperature by growing or "
        f"shrinking; with a vector of fixed norm {also}: "
        f"{_points(findings, ALL, 'fixed_norm_temperature', 'fixed_norm', 2)} on "
        "generated graphs."
    )
    return Paragraph(f"A temperature {plain}.", evidence)


def _temperature_words(findings: Findings, arm: str, against: str) -> str:
    if temperature_claim(findings, arm, against).is_supported:
        return "helps"
    tests = findings.tests_of(ALL, arm, against) + findings.tests_of(REAL, arm, against)
    if tests and all(test.is_equivalent for test in tests):
        bound = findings.plan.bounds.equivalence
        return f"changes accuracy by less than {bound:g} point on average"
    return "is not shown to help"


def _all_better(tests: list[Across]) -> bool:
    return bool(tests) and all(t.is_better and not t.is_equivalent for t in tests)


def _points(
    findings: Findings,
    kind: str,
    arm: str,
    against: str = "plain",
    digits: int = 1,
    *,
    mark: bool = False,
) -> str:
    """The mean differences of both backbones: `+1.0 and +2.0`.

    Args:
        findings: The results.
        kind: The kind of graphs.
        arm: The arm.
        against: What it is compared with.
        digits: Decimal places.
        mark: Whether to say which of them are within noise.
    """

    def of(backbone: BackboneName) -> str:
        test = findings.test(kind, backbone, arm, against)
        if test is None:
            return "-"
        is_shown = test.is_better or test.is_worse
        noise = f" (with {backbone} within noise)" if mark and not is_shown else ""
        return f"{signed(test.mean, digits)}{noise}"

    return " and ".join(of(backbone) for backbone in findings.plan.backbones)


def _counts(tests: list[Across]) -> str:
    if not tests:
        return "not tested"
    better = " and ".join(str(test.better) for test in tests)
    worse = " and ".join(str(test.worse) for test in tests)
    return f"better on {better} of {tests[0].tested} graphs, worse on {worse}"


def _side_points(found: list[Side]) -> str:
    points = " and ".join(signed(one.mean, 1) for one in found)
    better = " and ".join(str(one.better) for one in found)
    worse = " and ".join(str(one.worse) for one in found)
    return f"{points} (better on {better} graphs, worse on {worse})"
