"""The table of docs/when.md that says what to use when."""

from __future__ import annotations

from collections.abc import Sequence

from tempergat.study.report import markdown_rows, signed
from tempergat.study.when.report.analysis import Across
from tempergat.study.when.report.findings import (
    HETEROPHILIC,
    HOMOPHILIC,
    REAL,
    Findings,
)

_USED = {
    "residual": "a residual (`residual=True`)",
    "post_gate": 'the gate on the output (`gate="post"`)',
    "post_gate_residual": "the gate on the output, beside a residual",
    "gate_first": 'the gate before attention (`gate="first"`)',
    "temperature": 'a temperature (`temperature="layer"`)',
}
_KINDS = {
    HETEROPHILIC: "generated, neighbours share a class no more often than by chance",
    HOMOPHILIC: "generated, neighbours share a class more often",
    REAL: "real graphs, settings searched",
}

# With fewer, Wilcoxon's p cannot be below 0.05.
LEAST_FAMILIES = 6

_YES = "yes"
_NO = "no"
_DEPENDS = "depends on the graph"
_SOME = "on some graphs"
_NOT_SHOWN = "not shown to help"
_TOO_FEW = "too few graphs to say"


def use_section(findings: Findings) -> str:
    """What to add to the plain backbone, by kind of graph, and what the words mean."""
    kinds = [
        kind
        for kind in _KINDS
        if all(findings.tests.get((kind, b)) for b in findings.plan.backbones)
    ]
    rows, verdicts = [], set()
    for arm, words in _USED.items():
        row = [words]
        for kind in kinds:
            against = "residual" if arm == "post_gate_residual" else "plain"
            tests = findings.tests_of(kind, arm, against)
            if tests:
                verdict = advice(findings.plan.backbones, tests)
                verdicts.add(verdict)
                row.append(f"**{verdict}**: {_numbers(tests)}")
        if len(row) == len(kinds) + 1:
            rows.append(row)
    return (
        "## Use this when\n\n"
        + markdown_rows(["add", *(_KINDS[kind] for kind in kinds)], rows)
        + _note(findings, verdicts)
    )


def advice(backbones: Sequence[str], tests: Sequence[Across]) -> str:
    """What the tests of all backbones say about using an arm, in a few words."""
    if any(test.graphs < LEAST_FAMILIES for test in tests):
        return _TOO_FEW
    helps = [
        backbone
        for backbone, test in zip(backbones, tests, strict=True)
        if test.is_better and not test.is_equivalent
    ]
    if len(helps) == len(tests):
        return _YES
    if all(test.is_worse or test.is_equivalent for test in tests):
        return _NO
    if helps:
        return _with(helps[0])
    if any(test.is_worse for test in tests):
        return _NOT_SHOWN
    if all(test.better and test.worse for test in tests):
        return _DEPENDS
    if all(test.better and not test.worse for test in tests):
        return _SOME
    return _NOT_SHOWN


def _with(backbone: str) -> str:
    return f"with {backbone} only"


def _numbers(tests: Sequence[Across]) -> str:
    points = " / ".join(signed(test.mean, 1) for test in tests)
    better = "/".join(str(test.better) for test in tests)
    worse = "/".join(str(test.worse) for test in tests)
    return f"{points}; {better} better, {worse} worse of {tests[0].tested}"


def _note(findings: Findings, verdicts: set[str]) -> str:
    bound = f"{findings.plan.bounds.equivalence:g} point"
    meanings = {
        _YES: "across graphs better with both backbones, and not shown to gain less "
        f"than {bound}",
        **{_with(b): "that holds with this backbone" for b in findings.plan.backbones},
        _NO: f"with both backbones worse, or shown to change less than {bound}",
        _DEPENDS: "across graphs no difference is shown, but with both backbones it is "
        "better on some graphs and worse on others",
        _SOME: "across graphs no difference is shown, but with both backbones it is "
        "better on some graphs and worse on none",
        _NOT_SHOWN: "none of these",
        _TOO_FEW: "no test across graphs is possible",
    }
    lines = [
        f"- **{word}**: {meaning}.\n"
        for word, meaning in meanings.items()
        if word in verdicts
    ]
    return (
        "\nEach cell has the verdict, the mean gain in points with "
        f"{' / '.join(findings.plan.backbones)}, and on how many graphs the arm is "
        "better and worse. Gains are over the plain backbone; beside a residual, over "
        "the residual alone. On real graphs the mean is over families of graphs. "
        "Across graphs the test is Wilcoxon's, within a graph a paired t-test over "
        "seeds or splits; both are Holm-corrected, and p is to be below 0.05.\n\n"
        + "".join(lines)
        + _failures_note(findings)
    )


def _failures_note(findings: Findings) -> str:
    if not findings.untrained["real"].count("post_gate"):
        return ""
    return (
        "\nThe tests do not count the graphs on which runs with the gate "
        "[fail to train](#runs-that-fail-to-train) as worse, although its mean can be "
        "far lower there.\n"
    )
