"""The answer of docs/when.md, and what to use when."""

from __future__ import annotations

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

# With fewer, Wilcoxon's p cannot be below 0.05.
_LEAST_FAMILIES = 6


def answer(findings: Findings) -> list[str]:
    """Three paragraphs: gate and residual, real graphs, the temperature."""
    if not findings.tests:
        return ["No graph has all its runs yet, so there is no answer."]
    return [_gate_sentence(findings), _real_sentence(findings), _t_sentence(findings)]


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
            gains = [f"{signed(t.mean, 1)} ({_verdict(t)}){beyond}" for t in found]
            rows.append([words, kind_words, _advice(found), *gains])
    backbones = [f"gain, {backbone}" for backbone in findings.plan.backbones]
    return markdown_rows(["add", "where", "use it?", *backbones], rows)


def _baseline(arm: str) -> str:
    return "residual" if arm == "post_gate_residual" else "plain"


def _verdict(test: Across) -> str:
    return "not tested" if test.graphs < _LEAST_FAMILIES else test.verdict


def _advice(tests: list[Across]) -> str:
    if any(test.graphs < _LEAST_FAMILIES for test in tests):
        return "too few graphs to say"
    if all(test.is_better and not test.is_equivalent for test in tests):
        return "yes"
    if all(test.is_worse or test.is_equivalent for test in tests):
        return "no"
    if any(test.is_better for test in tests):
        return "perhaps"
    return "not shown to help"


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
        noise = " (within noise)" if mark and not is_shown else ""
        return f"{signed(test.mean, digits)}{noise}"

    return " and ".join(of(backbone) for backbone in findings.plan.backbones)


def _all_graphs(findings: Findings, kind: str, arm: str, against: str) -> list[Across]:
    """A contrast with every backbone; empty where one could not be tested."""
    tests = [findings.test(kind, b, arm, against) for b in findings.plan.backbones]
    return [] if None in tests else [test for test in tests if test is not None]


def _gate_sentence(findings: Findings) -> str:
    gate = _points(findings, HETEROPHILIC, "post_gate", mark=True)
    residual = _points(findings, HETEROPHILIC, "residual", mark=True)
    on_top = _points(findings, HETEROPHILIC, "post_gate_residual", "residual")
    claim = own_path_claim(findings)
    failed = [words for words, holds in claim.conditions.items() if not holds]
    verdict = f"is supported: all {len(claim.conditions)} conditions of the plan hold"
    if failed:
        verdict = (
            f"is not supported: of the plan's {len(claim.conditions)} conditions "
            f"{len(failed)} {'does' if len(failed) == 1 else 'do'} not hold "
            f"({listed(failed)})"
        )
    return (
        "On generated graphs whose neighbours share a class no more often than by "
        f"chance, a plain residual gains {residual} points "
        f"({' and '.join(findings.plan.backbones)}), the gate on the output {gate}, "
        f"and the gate on top of the residual {on_top}; the claim that the gate is a "
        f"path for the target's own features {verdict}."
    )


def _real_sentence(findings: Findings) -> str:
    homo = _shown(findings, HOMOPHILIC, "residual")
    start = f"Where neighbours share a class more often, a residual {homo}"
    found = _all_graphs(findings, REAL, "residual", "plain")
    if not found:
        return f"{start}; no two real graphs have all their runs yet."
    on_top = _shown(findings, REAL, "post_gate_residual", "residual")
    few = "" if found[0].graphs >= _LEAST_FAMILIES else ", too few for a test"
    return (
        f"{start}. On {found[0].tested} real graphs, every arm with settings of its "
        "own, a residual "
        f"{_shown(findings, REAL, 'residual')}, the gate on the output "
        f"{_shown(findings, REAL, 'post_gate')}, and on top of the residual the gate "
        f"{on_top}. Points on real graphs are means over {found[0].graphs} families "
        f"of graphs{few}."
    )


def _shown(findings: Findings, kind: str, arm: str, against: str = "plain") -> str:
    """What an arm does on graphs of a kind, with the numbers of both backbones."""
    tests = _all_graphs(findings, kind, arm, against)
    numbers = _points(findings, kind, arm, against)
    bound = f"{findings.plan.bounds.equivalence:g} point"
    if not tests:
        return "was not tested"
    if all(test.is_equivalent for test in tests):
        return f"changes less than {bound} ({numbers})"
    if all(test.is_better for test in tests):
        return f"helps ({numbers})"
    if all(test.is_worse for test in tests):
        return f"costs ({numbers})"
    better_on, worse_on = (
        " and ".join(str(count) for count in counts)
        for counts in ([t.better for t in tests], [t.worse for t in tests])
    )
    counts = f"better on {better_on} of {tests[0].tested} graphs, worse on {worse_on}"
    better, worse = (
        any(test.better for test in tests),
        any(test.worse for test in tests),
    )
    words = {
        (True, True): "helps on some graphs and costs on others",
        (True, False): "helps on some graphs and costs on none",
        (False, True): "costs on some graphs and helps on none",
        (False, False): "is not shown to help or cost",
    }[better, worse]
    return f"{words} ({numbers}; {counts})"


def _t_sentence(findings: Findings) -> str:
    free = _points(findings, ALL, "temperature", digits=2)
    fixed = _points(findings, ALL, "fixed_norm_temperature", "fixed_norm", 2)
    real = ""
    if _all_graphs(findings, REAL, "temperature", "plain"):
        real = f" On real graphs it {_shown(findings, REAL, 'temperature')}."
    return (
        f"A temperature {_t_words(findings, 'temperature', 'plain')} ({free} over all "
        "generated graphs), and where the attention vector has a fixed norm, so that "
        "it cannot replace a temperature, a temperature "
        f"{_t_words(findings, 'fixed_norm_temperature', 'fixed_norm')} ({fixed}).{real}"
    )


def _t_words(findings: Findings, arm: str, against: str) -> str:
    if temperature_claim(findings, arm, against).is_supported:
        return "helps"
    tests = _all_graphs(findings, ALL, arm, against)
    if tests and all(test.is_equivalent for test in tests):
        bound = findings.plan.bounds.equivalence
        return f"changes accuracy by less than {bound:g} point"
    return "is not shown to help"
