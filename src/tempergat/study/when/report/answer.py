"""The answer of docs/when.md in three sentences, and what to use when."""

from __future__ import annotations

from collections.abc import Callable

from tempergat.base import listed
from tempergat.nn import BackboneName
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
    """The mean differences of both backbones: `+1.0 (gat) and +2.0 (gatv2)`."""

    def of(backbone: BackboneName) -> str:
        test = findings.test(kind, backbone, arm, against)
        return f"{signed(None if test is None else test.mean, digits)} ({backbone})"

    return " and ".join(of(backbone) for backbone in findings.plan.backbones)


def _every(findings: Findings, kind: str, holds: Callable[[Across], bool]) -> bool:
    """Whether something holds of the residual's gain with every backbone."""
    tests = [findings.test(kind, b, "residual") for b in findings.plan.backbones]
    return all(test is not None and holds(test) for test in tests)


def _gate_sentence(findings: Findings) -> str:
    gate = _points(findings, HETEROPHILIC, "post_gate")
    residual = _points(findings, HETEROPHILIC, "residual")
    on_top = _points(findings, HETEROPHILIC, "post_gate_residual", "residual")
    neighbour = _points(findings, HETEROPHILIC, "neighbour_gate")
    numbers = (
        f"on generated graphs whose neighbours are mostly of other classes it gains "
        f"{gate} points, a plain residual {residual}, a gate of the same size that "
        f"sees only the neighbours {neighbour}, and on top of the residual the gate "
        f"changes {on_top}"
    )
    claim = own_path_claim(findings)
    if claim.is_supported:
        return (
            "The gate on the output helps as a path for the target's own features: "
            f"{numbers}."
        )
    failed = [words for words, holds in claim.conditions.items() if not holds]
    return (
        "That the gate on the output helps as a path for the target's own features "
        f"meets {len(claim.conditions) - len(failed)} of the plan's "
        f"{len(claim.conditions)} conditions (not met: {listed(failed)}): {numbers}."
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
            f"where neighbours are alike it depends on the features ({homo} points; "
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
                f"{backbone} is better on {test.better} and worse on {test.worse} of "
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
    word = "helps" if helps else "is not shown to help by more than the plan's bound"
    also = "helps" if helps_fixed else "is not shown to either"
    return (
        f"A temperature {word} ({free} points over all generated graphs), and where "
        f"the attention vector has a fixed norm, so that a temperature is no "
        f"re-parametrisation, it {also} ({fixed})."
    )
