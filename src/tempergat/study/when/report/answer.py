"""The answer of docs/when.md in three sentences, and what to use when."""

from __future__ import annotations

from collections.abc import Callable

from tempergat.base import listed
from tempergat.study.report import markdown_rows, signed
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

_USED = {
    "residual": "a residual (`residual=True`)",
    "post_gate": 'the gate on the output (`gate="post"`)',
    "post_gate_residual": "gate and residual",
    "gate_first": 'the gate before attention (`gate="first"`)',
    "temperature": 'a temperature (`temperature="layer"`)',
}
_KINDS = {
    HETEROPHILIC: "neighbours share a class no more often than by chance",
    HOMOPHILIC: "neighbours share a class more often than by chance",
    REAL: "real graphs, settings searched",
}


def answer(findings: Findings) -> list[str]:
    """Three sentences: the gate, what to use, the temperature."""
    if not findings.tests:
        return ["No graph has all its runs yet, so there is no answer."]
    return [_gate_sentence(findings), _use_sentence(findings), _t_sentence(findings)]


def use_table(findings: Findings) -> str:
    """What to add to the plain backbone, by kind of graph, as Markdown."""
    rows = []
    for arm, words in _USED.items():
        for kind, kind_words in _KINDS.items():
            tests = [
                findings.test(kind, backbone, arm, _baseline(arm))
                for backbone in findings.plan.backbones
            ]
            if any(test is None for test in tests):
                continue
            found = [test for test in tests if test is not None]
            beyond = " over the residual" if _baseline(arm) != "plain" else ""
            gains = [f"{signed(t.mean, 1)} ({t.verdict}){beyond}" for t in found]
            rows.append([words, kind_words, _advice(found), *gains])
    backbones = [f"gain, {backbone}" for backbone in findings.plan.backbones]
    return markdown_rows(["add", "where", "use it?", *backbones], rows)


def _baseline(arm: str) -> str:
    return "residual" if arm == "post_gate_residual" else "plain"


def _advice(tests: list[Across]) -> str:
    if all(test.is_better and not test.is_equivalent for test in tests):
        return "yes"
    if all(test.is_worse or test.is_equivalent for test in tests):
        return "no"
    if any(test.is_better for test in tests):
        return "perhaps"
    return "not shown to help"


def _points(
    findings: Findings, kind: str, arm: str, against: str = "plain", digits: int = 1
) -> str:
    """The mean differences of the backbones in their order: `+1.0 and +2.0`."""
    tests = [findings.test(kind, b, arm, against) for b in findings.plan.backbones]
    means = [None if test is None else test.mean for test in tests]
    return " and ".join(signed(mean, digits) for mean in means)


def _every(findings: Findings, kind: str, holds: Callable[[Across], bool]) -> bool:
    """Whether something holds of the residual's gain with every backbone."""
    tests = [findings.test(kind, b, "residual") for b in findings.plan.backbones]
    return all(test is not None and holds(test) for test in tests)


def _gate_sentence(findings: Findings) -> str:
    gate = _points(findings, HETEROPHILIC, "post_gate")
    residual = _points(findings, HETEROPHILIC, "residual")
    on_top = _points(findings, HETEROPHILIC, "post_gate_residual", "residual")
    neighbour = _points(findings, HETEROPHILIC, "neighbour_gate")
    claim = own_path_claim(findings)
    failed = [words for words, holds in claim.conditions.items() if not holds]
    verdict = f"meets all {len(claim.conditions)} conditions of the plan"
    if failed:
        met = len(claim.conditions) - len(failed)
        verdict = (
            f"meets {met} of the plan's {len(claim.conditions)} conditions (not met: "
            f"{listed(failed)})"
        )
    return (
        "On generated graphs whose neighbours are mostly of other classes, the gate on "
        f"the output gains {gate} points ({' and '.join(findings.plan.backbones)}), a "
        f"plain residual {residual}, the gate on top of the residual {on_top}, and a "
        f"gate of the same size that sees only the neighbours {neighbour}: that the "
        f"gate is a path for the target's own features {verdict}."
    )


def _use_sentence(findings: Findings) -> str:
    hetero = _points(findings, HETEROPHILIC, "residual")
    homo = _points(findings, HOMOPHILIC, "residual")
    if _every(findings, HETEROPHILIC, lambda t: t.is_better):
        start = f"So add a residual where neighbours differ ({hetero} points)"
    else:
        start = f"A residual is not shown to help where neighbours differ ({hetero})"
    if _every(findings, HOMOPHILIC, lambda t: t.is_better):
        end = f"it helps where neighbours are alike, too ({homo})"
    elif _every(findings, HOMOPHILIC, lambda t: t.is_worse):
        end = f"leave it out where neighbours are alike, where it costs ({homo})"
    elif _every(findings, HOMOPHILIC, lambda t: t.is_equivalent):
        end = f"where neighbours are alike it makes no difference ({homo})"
    else:
        end = (
            f"where neighbours are alike it depends on the graph ({homo}; "
            f"{_on_graphs(findings, HOMOPHILIC)})"
        )
    return f"{start}; {end}."


def _on_graphs(findings: Findings, kind: str) -> str:
    """On how many graphs the residual is better and worse, with each backbone."""
    found = []
    for backbone in findings.plan.backbones:
        test = findings.test(kind, backbone, "residual")
        if test is not None:
            found.append(
                f"{backbone}: better on {test.better} and worse on {test.worse} of "
                f"{test.tested} graphs"
            )
    return ", ".join(found)


def _t_sentence(findings: Findings) -> str:
    free = _points(findings, ALL, "temperature", digits=2)
    fixed = _points(findings, ALL, "fixed_norm_temperature", "fixed_norm", 2)
    helps = temperature_claim(findings, "temperature", "plain").is_supported
    helps_fixed = temperature_claim(
        findings, "fixed_norm_temperature", "fixed_norm"
    ).is_supported
    bound = f"{findings.plan.bounds.equivalence:g} point"
    words = {True: "helps", False: f"is not shown to help by as much as {bound}"}
    return (
        f"A temperature {words[helps]} ({free} over all generated graphs); where the "
        "attention vector has a fixed norm, so that a temperature is no "
        f"re-parametrisation, it {words[helps_fixed]} ({fixed})."
    )
