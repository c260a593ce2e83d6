"""docs/calibration.md: every cell of the grid that was tried on the baselines."""

from collections.abc import Sequence
from pathlib import Path

from tempergat.base import write_into
from tempergat.study.engine import read_runs
from tempergat.study.multiverse import calibration_part, distances_figure
from tempergat.study.paper import PLAIN_METHODS, PaperCell, read_paper
from tempergat.study.report import Table, filled, markdown_rows, mean_and_std, signed
from tempergat.study.search import CalibrationPlan, load_calibration
from tempergat.study.tuning.calibration import Cell, DatasetCalibration, judge

CALIBRATION_CSV = "calibration.csv"
_FIGURE = "calibration"
_TITLE = "# Settings that the paper does not state, tried on its baselines"
_NOT_JOINT = (
    "The paper leaves settings open, and its baselines alone do not identify them: "
    "several cells of the grid fit each dataset within noise. The settings of "
    "recipes/paper are the best-fitting ones, chosen for each dataset separately. A "
    "calibration joint over the datasets is planned in results/multiverse/plan.yaml "
    "and was not run.\n"
)
_MADE_BY = (
    "`tempergat reproduce calibration` makes this page from results/. The paper does "
    "not state how features are normalised, the weight decay of the attention methods, "
    "the dropout on attention, or which epoch of a run is reported. Cells are judged "
    "by test accuracy, because the purpose is to find the settings that the paper "
    "used, not a good model.\n"
)


def reproduce_calibration(
    results: Path, docs: Path
) -> tuple[tuple[DatasetCalibration, ...], Path]:
    """Write docs/calibration.md: the joint calibration, then the first one.

    Args:
        results: The project's folder of results.
        docs: Where the page goes.

    Returns:
        The calibrations of the datasets that were run, and where the page is.

    Raises:
        UserError: A file or a run is missing.
    """
    plan, paper = load_calibration(), read_paper()
    runs = read_runs(results / CALIBRATION_CSV)
    ran = {run.dataset for run in runs}
    found = tuple(
        judge(dataset, runs, plan, paper[dataset])
        for dataset in plan.datasets
        if dataset in ran
    )
    page = docs / "calibration.md"
    devices = sorted({run.device for run in runs})
    joint = calibration_part(results)
    picture = ""
    if joint.cells:
        distances_figure(joint.cells, joint.near, docs / "figures" / _FIGURE)
        picture = f"![Distances from the paper](figures/{_FIGURE}.svg)\n\n"
    text = [
        f"{_TITLE}\n\n{joint.answer or _NOT_JOINT}\n{picture}{_MADE_BY}",
        joint.section,
        _introduction(plan, devices),
    ]
    for calibration in found:
        table = calibration_table(calibration, paper[calibration.dataset])
        rows = markdown_rows(table.columns, table.rows)
        text.append(f"### {calibration.dataset}\n\n{rows}\n{table.notes[0]}\n")
    write_into(page.parent, page.name, filled("\n".join(part for part in text if part)))
    return found, page


def calibration_table(
    calibration: DatasetCalibration, paper: dict[str, PaperCell]
) -> Table:
    """The cells of one dataset beside the paper's baselines."""
    chosen = calibration.chosen
    theirs = [mean_and_std(paper[name].mean, paper[name].std) for name in PLAIN_METHODS]
    rows = [("the paper", "", "", *theirs, "", "")]
    rows += [
        _row(cell, "chosen" if cell is chosen else "") for cell in calibration.cells
    ]
    distances = ", ".join(
        f"{name} {signed(distance, 1)}" for name, distance in chosen.distances.items()
    )
    return Table(
        f"{calibration.dataset}: test accuracy of the baselines in percent",
        (
            "features",
            "weight decay",
            "attention dropout",
            *PLAIN_METHODS,
            "misfit",
            "",
        ),
        tuple(rows),
        (
            f"The chosen cell's means differ from the paper's by {distances} "
            "standard errors.",
        ),
    )


def _row(cell: Cell, mark: str) -> tuple[str, ...]:
    return (
        "rows sum to one" if cell.settings["normalize_features"] else "raw",
        f"{cell.settings['weight_decay']:g}",
        f"{cell.settings['attention_dropout']:g}",
        *(
            mean_and_std(summary.mean, summary.std)
            + (f" ({summary.failed} failed)" if summary.failed else "")
            for summary in cell.baselines.values()
        ),
        f"{cell.misfit:.1f}",
        mark,
    )


def _introduction(plan: CalibrationPlan, devices: Sequence[str]) -> str:
    seeds = plan.run_seeds
    return (
        "## The first calibration, one dataset at a time\n\n"
        "The settings of recipes/paper, with which the published runs were made, come "
        "from here. They were tried on gcn, gat and "
        f"gatv2 only, with seeds {seeds.start} to {seeds.stop - 1}, none of which is "
        f"reported elsewhere, on {', '.join(devices)}. The grid and the criterion were "
        "fixed beforehand in src/tempergat/searches/calibration.yaml. The grid was "
        "drawn around an earlier trial, and whoever drew it had seen scores of "
        "variants in that trial; no variant took part after that.\n\n"
        "The misfit is the sum over the three baselines of the squared difference of "
        "our mean from the paper's, each in standard errors of that difference, and "
        "the cell with the least misfit is chosen. A misfit far above 3 says that no "
        "cell matches the paper's baselines within noise. Neighbouring cells differ by "
        "less than their uncertainty, the selection rule was fixed, and on Pubmed "
        "gcn, which fits nowhere, decides the normalisation of the others.\n"
    )
