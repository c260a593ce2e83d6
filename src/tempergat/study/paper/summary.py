"""The beginning of docs/reproduction.md: the answer, and what it rests on."""

from collections.abc import Sequence

from tempergat.stats import ALPHA, Summary
from tempergat.study.paper.claims import DatasetReproduction
from tempergat.study.paper.gains import GATED, TEMPERATURE_ALONE, pooled_gain
from tempergat.study.report import markdown_rows, p_value, signed
from tempergat.training import SELECTION_RULES

RULE_WORDS = {
    "best_val_accuracy": "best validation accuracy",
    "best_val_loss": "best validation loss",
    "last_epoch": "last epoch",
}
# The rules that choose an epoch by the validation nodes.
_VALIDATION_RULES = ("best_val_accuracy", "best_val_loss")
_OUTCOMES = ("holds", "within noise", "reversed")


def answer(datasets: Sequence[DatasetReproduction], further: str = "") -> str:
    """The answer, before the picture.

    Args:
        datasets: The datasets that were run.
        further: What other settings give, as a sentence without its full stop.
    """
    counts = {rule: _outcomes(datasets, rule) for rule in RULE_WORDS}
    gains = len(counts["best_val_accuracy"])
    passed = ", ".join(
        f"{counts[rule].count('holds')} at {words}"
        for rule, words in RULE_WORDS.items()
    )
    return (
        f"{_gates_sentence(datasets)} {_temperature_sentence(datasets)} How many of "
        f"the {gains} gains in the paper's table pass a test depends on the rule that "
        "selects a run's epoch, which the paper does not state: the same runs give "
        f"{passed}.{f' {further}.' if further else ''}\n"
    )


def by_rule(datasets: Sequence[DatasetReproduction]) -> str:
    """The outcome of the paper's gains under each selection rule."""
    rows = []
    for rule, words in RULE_WORDS.items():
        outcomes = _outcomes(datasets, rule)
        rows.append(
            [
                words,
                *(str(outcomes.count(outcome)) for outcome in _OUTCOMES),
                _held(datasets, rule, GATED),
                _held(datasets, rule, TEMPERATURE_ALONE),
            ]
        )
    columns = ["epoch selected by", "hold", "within noise", "reversed"]
    columns += ["gated variants' gains that hold", "temperature alone"]
    return (
        "## The gains under three selection rules\n\n"
        + markdown_rows(columns, rows)
        + "\nA gain is a variant whose mean is above its backbone's in the paper. It "
        "holds when our paired seeds show it too (paired t-test, 5 %, Holm-corrected "
        "over the dataset's variants), and is reversed when they show the opposite. "
        "Every run was scored under all three rules.\n"
    )


def pooled(datasets: Sequence[DatasetReproduction]) -> str:
    """The average gain of the gated variants, and of a temperature alone."""
    rows = []
    for name, methods in (
        (f"{len(GATED)} gated variants", GATED),
        (f"temperature alone ({len(TEMPERATURE_ALONE)} variants)", TEMPERATURE_ALONE),
    ):
        for dataset in datasets:
            found = [pooled_gain(dataset.by_rule[r], methods) for r in RULE_WORDS]
            rows.append([name, dataset.result.dataset, *map(_with_interval, found)])
    return (
        "## Gains pooled over variants\n\n"
        "The average over the variants, in points, with its 95 % interval over seeds. "
        "All runs have the same test nodes, so the interval says what other seeds "
        "would give, not other splits.\n\n"
        + markdown_rows(["variants", "dataset", *RULE_WORDS.values()], rows)
    )


def joint(datasets: Sequence[DatasetReproduction]) -> str:
    """All variants together beside the paper's."""
    rows = []
    for dataset in datasets:
        for test in dataset.joint:
            low, high = test.test.interval()
            rows.append(
                [
                    dataset.result.dataset,
                    test.quantity,
                    f"{test.below} of {test.variants}",
                    f"{signed(test.test.difference)} ({signed(low)} to {signed(high)})",
                    p_value(test.test.p),
                    p_value(test.p_correlated),
                ]
            )
    if not rows:
        return ""
    columns = ["dataset", "variants'", "below the paper's"]
    columns += ["average difference (95 % interval)", "p", "p, correlated"]
    return (
        "## All variants together beside the paper's\n\n"
        "Cell by cell most of our means agree with the paper's; together they need "
        "not. One test per dataset, at best validation accuracy: the average over the "
        "variants, ours minus the paper's. Ours is averaged within seeds. The paper "
        "gives no seeds: p takes its means as independent, the last column as all "
        "erring in one direction, the most cautious reading.\n\n"
        + markdown_rows(columns, rows)
    )


def agreement(datasets: Sequence[DatasetReproduction]) -> str:
    """Which cells agree with the paper's."""
    rows = []
    for dataset in datasets:
        cells = dataset.cells
        agree = sum(c.p_holm is not None and c.p_holm >= ALPHA for c in cells)
        rows.append(
            [
                dataset.result.dataset,
                f"{agree} of {len(cells)}",
                str(sum(cell.ours.summary.failed for cell in cells)),
            ]
        )
    columns = ["dataset", "cells that agree with the paper's", "failed runs"]
    return (
        "## Cells beside the paper's\n\n"
        + markdown_rows(columns, rows)
        + "\nA cell agrees when Welch's test shows no difference between our mean and "
        "the paper's (5 %, Holm-corrected over the dataset's methods). That is absence "
        "of evidence: the tables below say which gains are shown to be equal.\n"
    )


def _outcomes(
    datasets: Sequence[DatasetReproduction],
    rule: str,
    methods: Sequence[str] | None = None,
) -> list[str]:
    return [
        claim.outcome
        for dataset in datasets
        for claim in dataset.claims_by_rule[rule]
        if claim.outcome is not None and (methods is None or claim.method in methods)
    ]


def _held(
    datasets: Sequence[DatasetReproduction], rule: str, methods: Sequence[str]
) -> str:
    outcomes = _outcomes(datasets, rule, methods)
    return f"{outcomes.count('holds')} of {len(outcomes)}"


# By the number of validation rules that show a gain, and that show a loss.
_GATE_WORDS = {
    (2, 0): "gain on",
    (1, 0): "gain under one of them on",
    (0, 0): "show no difference on",
    (1, 1): "gain under one and lose under the other on",
    (0, 1): "lose under one of them on",
    (0, 2): "lose on",
}


def _gates_sentence(datasets: Sequence[DatasetReproduction]) -> str:
    parts: dict[tuple[int, int], list[str]] = {shown: [] for shown in _GATE_WORDS}
    for dataset in datasets:
        found = [pooled_gain(dataset.by_rule[r], GATED) for r in _VALIDATION_RULES]
        signs = [_sign(summary) for summary in found]
        numbers = " and ".join("-" if s is None else signed(s.mean) for s in found)
        shown = signs.count(1), signs.count(-1)
        parts[shown].append(f"{dataset.result.dataset} ({numbers} points)")
    phrases = [
        f"{_GATE_WORDS[shown]} {_listed(of)}" for shown, of in parts.items() if of
    ]
    return (
        "Under the two rules that select an epoch by validation nodes, accuracy and "
        f"loss, the paper's gated variants together {_listed(phrases)}"
        f"{_gates_at_the_end(datasets)}."
    )


def _gates_at_the_end(datasets: Sequence[DatasetReproduction]) -> str:
    """Where the gated variants together gain and lose at the last epoch."""
    parts: dict[int, list[str]] = {1: [], -1: []}
    for dataset in datasets:
        found = pooled_gain(dataset.by_rule["last_epoch"], GATED)
        if found is not None and (sign := _sign(found)) != 0:
            parts[sign].append(f"{dataset.result.dataset} ({signed(found.mean)})")
    words = {1: "gain on", -1: "lose on"}
    phrases = [f"{words[sign]} {_listed(of)}" for sign, of in parts.items() if of]
    return f"; at the last epoch they {_listed(phrases)}" if phrases else ""


def _temperature_sentence(datasets: Sequence[DatasetReproduction]) -> str:
    outcomes = {
        rule: _outcomes(datasets, rule, TEMPERATURE_ALONE) for rule in RULE_WORDS
    }
    gains = len(outcomes["best_val_accuracy"])
    held = max(of_rule.count("holds") for of_rule in outcomes.values())
    start = (
        f"A temperature alone shows none of its {gains} gains under any rule"
        if held == 0
        else f"A temperature alone shows at most {held} of its {gains} gains"
    )
    costs = [
        dataset.result.dataset
        for dataset in datasets
        if all(
            _sign(pooled_gain(dataset.by_rule[rule], TEMPERATURE_ALONE)) == -1
            for rule in SELECTION_RULES
        )
    ]
    return f"{start}, and costs accuracy on {_listed(costs)}." if costs else f"{start}."


def _sign(summary: Summary | None) -> int:
    """1 where the interval is above 0, -1 where it is below, otherwise 0."""
    if summary is None or summary.low is None or summary.high is None:
        return 0
    return 1 if summary.low > 0 else -1 if summary.high < 0 else 0


def _with_interval(summary: Summary | None) -> str:
    if summary is None or summary.low is None:
        return "-"
    return f"{signed(summary.mean)} ({signed(summary.low)} to {signed(summary.high)})"


def _listed(parts: Sequence[str]) -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
