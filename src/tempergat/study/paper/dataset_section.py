"""The part of docs/reproduction.md about one dataset."""

from collections.abc import Sequence

from tempergat.stats import ALPHA
from tempergat.study.paper.claims import Claim, DatasetReproduction
from tempergat.study.paper.gains import MARGINS, GainTest
from tempergat.study.paper.summary import RULE_WORDS
from tempergat.study.report import markdown_rows, mean_and_std, p_value, signed


def dataset_section(dataset: DatasetReproduction) -> str:
    """Scores, gains and learned values of one dataset."""
    result = dataset.result
    notes = [
        f"\n{r.method}: {r.summary.failed} of {r.summary.failed + r.summary.runs} runs "
        f"failed and are not in its mean ({'; '.join(r.failures)}).\n"
        for r in result.results
        if r.failures
    ]
    time_s = sum(r.time_s for r in result.results)
    return "\n".join(
        [
            f"## {result.dataset}\n\n"
            f"Trained on {dataset.device} with {dataset.versions}; {time_s:.0f} s of "
            "computing in total.\n",
            f"![Scores on {result.dataset}](figures/scores-{result.dataset}.svg)\n",
            "### Beside the paper\n\n" + _cells_table(dataset) + "".join(notes),
            "### Variants against their backbones\n\n" + _claims_table(dataset.claims),
            "### Our gains beside the paper's\n\n" + _gains_table(dataset),
            "### Under other selection rules\n\n" + _rules_table(dataset),
            "### What was learned\n\n" + _learned_table(dataset),
        ]
    )


def _cells_table(dataset: DatasetReproduction) -> str:
    rows = []
    for cell in dataset.cells:
        summary = cell.ours.summary
        differs = cell.p_holm is not None and cell.p_holm < ALPHA
        rows.append(
            [
                cell.paper.method,
                mean_and_std(cell.paper.mean, cell.paper.std),
                mean_and_std(summary.mean, summary.std),
                f"{summary.runs}",
                signed(None if cell.test is None else cell.test.difference),
                signed(None if cell.test is None else cell.test.in_standard_errors, 1),
                "-" if cell.p_holm is None else "no" if differs else "yes",
            ]
        )
    columns = ["method", "paper", "ours", "runs", "difference", "standard errors"]
    return markdown_rows([*columns, "agrees"], rows)


def _claims_table(claims: Sequence[Claim]) -> str:
    rows = []
    for claim in claims:
        ours = claim.ours
        interval = (
            "" if ours.low is None else f" ({signed(ours.low)} to {signed(ours.high)})"
        )
        rows.append(
            [
                claim.method,
                claim.backbone,
                signed(claim.paper_difference),
                signed(ours.difference) + interval,
                p_value(ours.t_p_holm),
                p_value(ours.wilcoxon_p_holm),
                signed(ours.effect_size),
                signed(ours.correlation),
                ours.verdict,
                claim.outcome or "the paper shows no gain",
            ]
        )
    columns = [
        "variant",
        "backbone",
        "paper",
        "ours (95 % interval)",
        "p",
        "p Wilcoxon",
    ]
    columns += ["d", "correlation of pairs", "verdict", "the paper's gain"]
    return markdown_rows(columns, rows)


def _gains_table(dataset: DatasetReproduction) -> str:
    rows = [
        _gain_row(claim, dataset.gains[claim.method])
        for claim in dataset.claims
        if claim.method in dataset.gains
    ]
    columns = ["variant", "paper", "ours", "ours minus the paper's (95 % interval)"]
    columns += [f"equal within {margin:g}" for margin in MARGINS]
    return (
        "Equal within a margin: p of two one-sided tests (TOST); below 0.05 the two "
        "gains are shown to differ by less. Power: how likely our test, at Holm's "
        "first step, is to show a gain as large as the paper's.\n\n"
        + markdown_rows([*columns, "power"], rows)
    )


def _gain_row(claim: Claim, gain: GainTest) -> list[str]:
    low, high = gain.versus_paper.interval()
    difference = signed(gain.versus_paper.difference)
    return [
        claim.method,
        signed(claim.paper_difference),
        signed(claim.ours.difference),
        f"{difference} ({signed(low)} to {signed(high)})",
        *(
            f"{'yes' if p < ALPHA else 'not shown'} ({p_value(p)})"
            for p in gain.equivalent.values()
        ),
        "-" if gain.power is None else f"{gain.power:.2f}",
    ]


def _rules_table(dataset: DatasetReproduction) -> str:
    rules = {rule: dataset.by_rule[rule] for rule in RULE_WORDS}
    claims = {
        rule: {claim.method: claim for claim in dataset.claims_by_rule[rule]}
        for rule in rules
    }
    rows = []
    for method in dataset.result.methods:
        row = [method]
        for rule, result in rules.items():
            scores = mean_and_std(
                result[method].summary.mean, result[method].summary.std
            )
            claim = claims[rule].get(method)
            gain = "" if claim is None else f"; {signed(claim.ours.difference)}"
            mark = "*" if claim is not None and claim.outcome == "holds" else ""
            row.append(f"{scores}{gain}{mark}")
        rows.append(row)
    return (
        "The score, and the gain over the backbone; with a star where a gain of the "
        "paper holds.\n\n"
        + markdown_rows(["method", *(RULE_WORDS[rule] for rule in rules)], rows)
    )


def _learned_table(dataset: DatasetReproduction) -> str:
    rows = [
        [
            r.method,
            *(
                " ".join(f"{value:.2f}" for value in values) or "-"
                for values in (
                    r.selected.temperatures,
                    r.last.temperatures,
                    r.selected.gate_means,
                    r.last.gate_means,
                )
            ),
        ]
        for r in dataset.result.results
        if r.selected != r.selected.__class__()
    ]
    columns = ["temperatures, selected epoch", "last epoch"]
    columns += ["mean gates, selected epoch", "last epoch"]
    return "Means over runs, one value per layer.\n\n" + markdown_rows(
        ["method", *columns], rows
    )
