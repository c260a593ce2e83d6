"""The answer of docs/when.md, and what to use when."""

from __future__ import annotations

from collections.abc import Callable

from tempergat.base import listed
from tempergat.nn import BackboneName
from tempergat.study.report import markdown_rows, signed
from tempergat.study.when.graphs import grid
from tempergat.study.when.report.analysis import Across, homophily_line
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
    """Three paragraphs: the gate, what to use, the temperature."""
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


def _every(findings: Findings, kind: str, holds: Callable[[Across], bool]) -> bool:
    """Whether something holds of the residual's gain with every backbone."""
    tests = [findings.test(kind, b, "residual") for b in findings.plan.backbones]
    return all(test is not None and holds(test) for test in tests)


def _gate_sentence(findings: Findings) -> str:
    gate = _points(findings, HETEROPHILIC, "post_gate", mark=True)
    residual = _points(findings, HETEROPHILIC, "residual")
    on_top = _points(findings, HETEROPHILIC, "post_gate_residual", "residual")
    neighbour = _points(findings, HETEROPHILIC, "neighbour_gate")
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
        f"({' and '.join(findings.plan.backbones)}), and the gate on the output "
        f"{gate}. On top of the residual the gate changes {on_top}; a gate of the "
        f"same size that sees only the neighbours gains {neighbour}. The claim that "
        f"the gate is a path for the target's own features {verdict}."
    )


def _use_sentence(findings: Findings) -> str:
    hetero = _points(findings, HETEROPHILIC, "residual")
    homo = _points(findings, HOMOPHILIC, "residual")
    if _every(findings, HETEROPHILIC, lambda t: t.is_better):
        start = f"So add a residual there ({hetero} points)"
    else:
        start = f"A residual is not shown to help there ({hetero})"
    if _every(findings, HOMOPHILIC, lambda t: t.is_better):
        end = f"it helps where neighbours share a class more often, too ({homo})"
    elif _every(findings, HOMOPHILIC, lambda t: t.is_worse):
        end = f"where neighbours share a class more often it costs ({homo})"
    elif _every(findings, HOMOPHILIC, lambda t: t.is_equivalent):
        end = (
            f"where neighbours share a class more often it makes no difference ({homo})"
        )
    else:
        end = (
            "where neighbours share a class more often it depends on the graph "
            f"({homo}; {_on_graphs(findings, HOMOPHILIC)})"
        )
    return f"{start}; {end}.{_on_the_line(findings)}"


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


def _on_the_line(findings: Findings) -> str:
    """Where the residual gains and loses on graphs that differ in homophily alone."""
    points = grid(findings.plan.generated)
    found = []
    for backbone, graphs in findings.generated.items():
        gains = {
            h: graph.gain("residual") for h, graph in homophily_line(graphs, points)
        }
        above = [f"{h:g}" for h, s in gains.items() if s.low is not None and s.low > 0]
        below = [
            f"{h:g}" for h, s in gains.items() if s.high is not None and s.high < 0
        ]
        found.append(
            f"{backbone} gains at {listed(above, 10) or 'none'} and loses at "
            f"{listed(below, 10) or 'none'}"
        )
    return (
        " On the graphs that differ in homophily alone, by 95 % intervals over seeds, "
        f"{'; '.join(found)}."
    )


def _t_sentence(findings: Findings) -> str:
    free = _points(findings, ALL, "temperature", digits=2)
    fixed = _points(findings, ALL, "fixed_norm_temperature", "fixed_norm", 2)
    return (
        f"A temperature {_t_words(findings, 'temperature', 'plain')} ({free} over all "
        "generated graphs). Where the attention vector has a fixed norm, so that a "
        "temperature is no re-parametrisation, it "
        f"{_t_words(findings, 'fixed_norm_temperature', 'fixed_norm')} ({fixed})."
    )


def _t_words(findings: Findings, arm: str, against: str) -> str:
    if temperature_claim(findings, arm, against).is_supported:
        return "helps"
    tests = [findings.test(ALL, b, arm, against) for b in findings.plan.backbones]
    if all(test is not None and test.is_equivalent for test in tests):
        bound = findings.plan.bounds.equivalence
        return f"changes accuracy by less than {bound:g} point"
    return "is not shown to help"
