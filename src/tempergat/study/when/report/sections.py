"""Sections of docs/when.md: arms, the plan's claim, its rule, real graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tempergat.base import joined
from tempergat.nn import BackboneName
from tempergat.study.report import markdown_rows, p_value, signed
from tempergat.study.when.arms import ARMS
from tempergat.study.when.report.analysis import gains_together
from tempergat.study.when.report.failures import BOUND, Untrained
from tempergat.study.when.report.findings import (
    HETEROPHILIC,
    Claim,
    Findings,
    own_path_claim,
)
from tempergat.study.when.report.rule import rule_test
from tempergat.study.when.report.threshold import by_homophily, sides
from tempergat.study.when.runs.rows import Case

_RULE_WORDS = {"residual": "gatv2 with a residual", "plain": "plain gatv2"}


def arms_section(findings: Findings) -> str:
    """What each arm adds, and its parameters."""
    rows = []
    for name in findings.plan.arms:
        counts = [
            str(findings.parameters.get((backbone, name), "-"))
            for backbone in findings.plan.backbones
        ]
        rows.append([name, ARMS[name].words, *counts])
    backbones = [f"parameters, {backbone}" for backbone in findings.plan.backbones]
    return (
        "## Arms\n\n"
        "The two control gates and the fixed norm exist in this study alone. "
        "Parameters are those of the model on a generated graph.\n\n"
        + markdown_rows(["arm", "what it adds", *backbones], rows)
    )


def claim_section(findings: Findings) -> str:
    """The conditions of the plan's claim about the gate."""
    claim = own_path_claim(findings)
    backbones = findings.plan.backbones
    words = list(dict.fromkeys(words for words, _ in claim.conditions))
    rows = [
        [w, *("yes" if claim.conditions[w, b] else "no" for b in backbones)]
        for w in words
    ]
    together = [
        f"{found:.2f} ({backbone})"
        for backbone, graphs in findings.generated.items()
        if (found := gains_together(graphs)) is not None
    ]
    return (
        "## Does the gate do what a residual does?\n\n"
        "In a plain layer a node's own features are one message among those of its "
        "neighbours. A residual adds them to the output directly. The gate on the "
        "output is computed from them, so it may bring them in as well. If this is why "
        "it helps, a residual can replace it, and gates that do not see the node's own "
        "features do not help: the gate fed by the neighbours' mean, and the constant "
        "gate. The plan's conditions, on generated graphs with homophily at or below "
        "chance:\n\n"
        + markdown_rows(["condition", *backbones], rows)
        + f"\n{_claim_verdict(findings, claim, words)}\n"
        + f"{_claim_on_real(findings)}"
        "\nNot in the plan: over all generated graphs, the gate's gain and the "
        f"residual's have a correlation of {' and '.join(together) or '-'}.\n"
    )


def _claim_verdict(findings: Findings, claim: Claim, words: Sequence[str]) -> str:
    parts = []
    for backbone in findings.plan.backbones:
        held = [w for w in words if claim.conditions[w, backbone]]
        count = "all" if len(held) == len(words) else f"{len(held)} of"
        parts.append(f"{count} {len(words)} hold with {backbone}")
    text = f"{joined(parts).capitalize()}. "
    if claim.is_supported:
        return text + "So the claim is supported."
    text += (
        "The plan asks for all of them with both backbones, so the claim is not "
        "supported."
    )
    gate = findings.tests_of(HETEROPHILIC, "post_gate")
    unsure = [
        f"{backbone} ({signed(test.mean)}, p {p_value(test.p_holm)})"
        for backbone, test in zip(findings.plan.backbones, gate, strict=False)
        if not test.is_better
    ]
    if unsure:
        text += f" With {joined(unsure)} the gate is not shown to gain at all."
    both = [w for w in words if all(claim.conditions[w, b] for b in _backbones(claim))]
    if both:
        text += f" With both backbones what holds is this: {'; '.join(both)}."
    return text


def _backbones(claim: Claim) -> list[BackboneName]:
    return list(dict.fromkeys(backbone for _, backbone in claim.conditions))


def _claim_on_real(findings: Findings) -> str:
    """The gains of the three gates on real graphs below the threshold."""

    def points(arm: str, against: str = "plain") -> str:
        found = sides(findings, arm, against, is_below=True)
        return " and ".join(signed(one.mean, 1) for one in found)

    beside = sides(findings, "post_gate", "residual", is_below=True)
    if not beside:
        return ""
    shown = [str((one.better or 0) + (one.worse or 0)) for one in beside]
    return (
        "\nNot in the plan: on real graphs with adjusted homophily below "
        f"{findings.plan.rule.threshold:g}, the gate on the output gains "
        f"{points('post_gate')} points, the gate fed by neighbours "
        f"{points('neighbour_gate')} and the constant gate {points('constant_gate')}; "
        f"a residual gains {points('residual')}, and the gate on top of it "
        f"{points('post_gate_residual', 'residual')}. Between the gate and a residual "
        "the tests within graphs show a difference on "
        f"{' and '.join(shown)} of these {len(beside[0].graphs)} graphs.\n"
    )


def rule_section(findings: Findings) -> str:
    """The plan's rule, and what real graphs say about it."""
    rule = findings.plan.rule
    start = (
        "## A rule for `tempergat diagnose`\n\n"
        f"Made from generated graphs: {_RULE_WORDS[rule.below]} where adjusted "
        f"homophily is below {rule.threshold:g}, {_RULE_WORDS[rule.otherwise]} "
        "elsewhere. It is judged on real graphs against always gatv2 with a residual. "
    )
    found = rule_test(findings.plan, findings.real.get("gatv2", ()))
    if found is None or found.families < 2:
        return (
            start + "No two real graphs have all their runs, so `diagnose` "
            "recommends no method.\n"
        )
    text = (
        start + f"Over {found.families} families it differs by {signed(found.mean)} "
        f"points (p {p_value(found.p)}): it "
        f"{'is' if found.is_supported else 'is not'} shown to be better."
    )
    if not found.is_supported:
        same = "A residual on every graph is as good as the rule, " + (
            f"to within {findings.plan.bounds.equivalence:g} point"
            if found.is_equivalent
            else "as far as these graphs show"
        )
        text += f" {same}. So `diagnose` recommends no method."
    return f"{text}\n"


def graphs_section(findings: Findings) -> str:
    """The gains on every real graph; empty without one."""
    names = ("residual", "post_gate", "temperature")
    rows: dict[str, list[str]] = {}
    for backbone in findings.plan.backbones:
        for homophily, graph in by_homophily(findings.plan, findings.real[backbone]):
            row = rows.setdefault(graph.graph, [graph.graph, f"{homophily:.2f}"])
            row.append(f"{graph.mean('plain'):.1f}")
            for arm in names:
                test = findings.test_within(backbone, graph.graph, arm)
                assert test is not None
                mark = "*" if test.verdict in ("better", "worse") else ""
                case = graph.graph, backbone, arm
                mark += "†" if findings.untrained["real"].seeds(case) else ""
                row.append(f"{signed(test.difference, 1)}{mark}")
    if not rows:
        return ""
    columns = ["graph", "adjusted homophily"]
    for backbone in findings.plan.backbones:
        columns += [f"{backbone}: plain", "residual", "gate", "temperature"]
    whole = [row for row in rows.values() if len(row) == len(columns)]
    has_failed = any("†" in cell for row in whole for cell in row)
    dagger = (
        f" A dagger: some of the {len(findings.plan.real.seeds)} runs failed to train."
    )
    return (
        "## Real graphs one by one\n\n"
        "Test accuracy of the plain backbone in percent, and points over it of a "
        "residual, the gate on the output and a temperature. A star: the paired test "
        "within the graph shows a difference (Holm-corrected)."
        f"{dagger if has_failed else ''}\n\n" + markdown_rows(columns, whole)
    )


def untrained_section(findings: Findings) -> str:
    """The runs that failed to train, by arm and graph; empty without real graphs."""
    found = findings.untrained["real"]
    if not found.runs:
        return ""
    seeds = len(findings.plan.real.seeds)
    text = (
        "## Runs that fail to train\n\n"
        "Not in the plan, and defined after the runs were seen. A run counts as failed "
        f"where its validation score is more than {BOUND:g} points below the median of "
        f"the {seeds} runs of its arm on its graph. The smallest graphs have 59 "
        "validation nodes, so that one score has a standard error of up to 6.5 points; "
        "a smaller bound would count noise. "
    )
    if found.smallest_failed is None:
        return f"{text}No run on a real graph counts.\n"
    arms = [arm for arm in findings.plan.arms if found.count(arm)]
    counts = [f"{arm} {found.count(arm)} of {found.runs[arm]}" for arm in arms]
    generated = findings.untrained["generated"]
    others = ""
    if generated.runs:
        others = (
            f" On generated graphs {len(generated.rows)} of "
            f"{sum(generated.runs.values()):,} runs count"
            + (f" ({joined(_arms(generated))})" if generated.rows else "")
            + "."
        )
    return (
        f"{text}Every bound from {np.ceil(10 * found.largest_kept) / 10:.1f} to "
        f"{np.floor(10 * found.smallest_failed) / 10:.1f} points gives the same runs "
        f"on real graphs: {len(found.rows)} of {sum(found.runs.values()):,}. By arm: "
        f"{', '.join(counts)}, every other arm none.{others} "
        f"{_rates_sentence(findings, found)}\n\n"
        + markdown_rows(
            [
                "graph",
                "backbone",
                "arm",
                "failed",
                "points over plain, all runs",
                "without the failed ones",
            ],
            [_untrained_row(findings, case) for case in found.cases],
        )
        + "\nSuch runs widen the intervals, so the tests above show no cost where "
        "the mean is far lower. An arm of which most runs fail is not found this way.\n"
    )


def _arms(found: Untrained) -> list[str]:
    return list(dict.fromkeys(row.key.arm for row in found.rows))


def _rates_sentence(findings: Findings, found: Untrained) -> str:
    """How many of the runs have the larger learning rate of the search."""
    settings = findings.plan.real.search.changes()
    largest = max(setting["learning_rate"] for setting in settings)
    fast = sum(
        settings[row.key.setting]["learning_rate"] == largest for row in found.rows
    )
    return (
        f"{fast} of the {len(found.rows)} have the larger learning rate of the search, "
        f"{largest:g}; the search chose it because its "
        f"{len(findings.plan.real.search.seeds)} runs did train."
    )


def _untrained_row(findings: Findings, case: Case) -> list[str]:
    name, backbone, arm = case
    failed = findings.untrained["real"].seeds(case)
    graphs = next(g for b, g in findings.real.items() if b == backbone)
    (graph,) = (graph for graph in graphs if graph.graph == name)
    plain = graph.scores["plain"]
    kept = [
        score - other
        for seed, score in graph.scores[arm].items()
        if seed not in failed
        and score is not None
        and (other := plain.get(seed)) is not None
    ]
    return [
        name,
        backbone,
        arm,
        f"{len(failed)} of {len(graph.scores[arm])}",
        signed(graph.mean(arm) - graph.mean("plain"), 1),
        signed(float(np.mean(kept)) if kept else None, 1),
    ]
