"""Our runs beside the paper's table: which cells agree, which claims hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tempergat.stats import PairedComparison, Welch, holm, welch
from tempergat.study.engine import Run
from tempergat.study.paper.gains import GainTest, JointTest, gain_tests, joint_tests
from tempergat.study.paper.numbers import BACKBONE_OF, PAPER_METHODS, PaperCell
from tempergat.study.results import DatasetResult, MethodResult, dataset_result
from tempergat.training import SELECTION_RULES

Outcome = Literal["holds", "within noise", "reversed", "too few runs"]


@dataclass(frozen=True)
class Cell:
    """Our runs of one method on one dataset beside the paper's.

    Attributes:
        test: Welch's test of our mean minus the paper's; None with fewer than two
            runs.
        p_holm: The p of that test, Holm-corrected over the dataset's methods.
    """

    paper: PaperCell
    ours: MethodResult
    test: Welch | None
    p_holm: float | None


@dataclass(frozen=True)
class Claim:
    """A variant against its backbone, in the paper's table and in our runs.

    Attributes:
        paper_difference: Variant minus backbone in the paper, in percent.
        ours: Our paired comparison, Holm-corrected over the dataset's variants.
        outcome: Whether the paper's gain holds in our runs; None where the paper's
            table shows no gain.
    """

    dataset: str
    method: str
    backbone: str
    paper_difference: float
    ours: PairedComparison
    outcome: Outcome | None


@dataclass(frozen=True)
class DatasetReproduction:
    """One dataset of the paper's table.

    Attributes:
        rules: Our result under each selection rule, best validation accuracy first.
        cells: Our results beside the paper's, one per method.
        claims_by_rule: One claim per variant with a backbone, for each rule.
        gains: Our gains beside the paper's, at the best validation accuracy.
        joint: All variants together beside the paper's.
        device: The devices of the runs.
        versions: The versions of the packages they were trained with.
    """

    rules: tuple[DatasetResult, ...]
    cells: tuple[Cell, ...]
    claims_by_rule: dict[str, tuple[Claim, ...]]
    gains: dict[str, GainTest]
    joint: tuple[JointTest, ...]
    device: str
    versions: str

    @property
    def result(self) -> DatasetResult:
        """Our result at the best validation accuracy."""
        return self.rules[0]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims at the best validation accuracy."""
        return self.claims_by_rule[self.result.selection]

    @property
    def by_rule(self) -> dict[str, DatasetResult]:
        """Our results by selection rule."""
        return {result.selection: result for result in self.rules}


def reproduce_dataset(
    runs: Sequence[Run], paper: Mapping[str, PaperCell]
) -> DatasetReproduction:
    """Compare the runs on one dataset with the paper's cells.

    Args:
        runs: Runs on one dataset, one configuration per method.
        paper: The paper's cells of that dataset by method.
    """
    metric = next(iter(paper.values())).metric
    rules = tuple(
        dataset_result(runs, PAPER_METHODS, BACKBONE_OF, metric, rule)
        for rule in SELECTION_RULES
    )
    return DatasetReproduction(
        rules=rules,
        cells=_cells(rules[0], paper),
        claims_by_rule={rule.selection: _claims(rule, paper) for rule in rules},
        gains=gain_tests(rules[0], paper),
        joint=joint_tests(rules[0], paper),
        device=", ".join(sorted({run.device for run in runs})),
        versions="; ".join(
            sorted(
                {
                    ", ".join(f"{k} {v}" for k, v in sorted(run.versions.items()))
                    for run in runs
                }
            )
        ),
    )


def _cells(result: DatasetResult, paper: Mapping[str, PaperCell]) -> tuple[Cell, ...]:
    tests = []
    for ours in result.results:
        summary, theirs = ours.summary, paper[ours.method]
        tests.append(
            None
            if summary.mean is None or summary.std is None
            else welch(
                (summary.mean, summary.std, summary.runs),
                (theirs.mean, theirs.std, theirs.runs),
            )
        )
    corrected = holm([None if test is None else test.p for test in tests])
    return tuple(
        Cell(paper[ours.method], ours, test, p)
        for ours, test, p in zip(result.results, tests, corrected, strict=True)
    )


def _claims(result: DatasetResult, paper: Mapping[str, PaperCell]) -> tuple[Claim, ...]:
    claims = []
    for ours in result.results:
        if ours.comparison is None:
            continue
        backbone = ours.comparison.baseline
        difference = paper[ours.method].mean - paper[backbone].mean
        claims.append(
            Claim(
                result.dataset,
                ours.method,
                backbone,
                difference,
                ours.comparison,
                _outcome(ours.comparison) if difference > 0 else None,
            )
        )
    return tuple(claims)


def _outcome(comparison: PairedComparison) -> Outcome:
    if comparison.verdict == "better":
        return "holds"
    if comparison.verdict == "worse":
        return "reversed"
    return comparison.verdict
