"""The parts of the pages about the joint calibration and the multiverse."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from tempergat.study.engine import Run, write_runs
from tempergat.study.multiverse import (
    MultiversePlan,
    calibration_part,
    load_multiverse,
    multiverse_part,
    runs_file,
    variant_stages,
)
from tempergat.study.paper import PaperCell, read_paper
from tempergat.training import RunConfig
from tests.support.made_up_runs import run

RESULTS = Path(__file__).resolve().parents[3] / "results"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The plan, without runs."""
    folder = tmp_path / "results"
    (folder / "multiverse").mkdir(parents=True)
    plan = yaml.safe_load((RESULTS / "multiverse" / "plan.yaml").read_text())
    (folder / "multiverse" / "plan.yaml").write_text(
        yaml.safe_dump(plan | {"seeds": 5})
    )
    return folder


def runs_of(
    plan: MultiversePlan, cell: PaperCell, config: RunConfig, offset: float
) -> list[Run]:
    """Runs with the paper's deviation, whose means are an offset from the paper's."""
    noise = np.random.default_rng(len(config.method)).normal(size=plan.seeds)
    noise = (noise - noise.mean()) / noise.std(ddof=1) * cell.std
    values = config.model_dump(mode="json")
    return [
        run(config.method, seed, (cell.mean + offset + z) / 100, cell.dataset, values)
        for seed, z in zip(plan.run_seeds, noise, strict=True)
    ]


def write_study(results: Path, gain: float | None) -> None:
    """Baselines equal to the paper's in one training, and variants that gain."""
    plan, paper = load_multiverse(results), read_paper()
    near, *far = plan.trainings()
    for dataset in plan.datasets:
        cells = paper[dataset]
        runs = []
        for method in plan.baselines:
            runs += runs_of(plan, cells[method], plan.config(near, dataset, method), 0)
            if dataset == "cora":
                for training in far:
                    config = plan.config(training, dataset, method)
                    runs += runs_of(plan, cells[method], config, 9.0)
        for stage in variant_stages(plan, [near]) if gain is not None else ():
            if stage.dataset == dataset:
                for config in stage.configs:
                    backbone = "gatv2" if config.method.endswith("_v2") else "gat"
                    change = (gain or 0.0) - 0.5 * (not config.decay_gate)
                    runs += runs_of(plan, cells[backbone], config, change)
        write_runs(runs, results / runs_file(dataset))


def test_without_runs_there_is_nothing_to_say(results: Path, tmp_path: Path) -> None:
    assert calibration_part(results).section == ""
    assert multiverse_part(results, tmp_path / "docs").section == ""
    assert calibration_part(tmp_path / "elsewhere").answer == ""


def test_the_calibration_names_the_cell_that_fits(results: Path) -> None:
    write_study(results, None)
    part = calibration_part(results)
    assert "Of 36 combinations" in part.answer
    assert "1 cannot be told from the paper's" in part.answer
    assert "epoch by best validation accuracy" in part.answer
    assert "the variants have not been run there yet" in part.answer
    variants = multiverse_part(results, results.parent / "docs")
    assert "These runs are missing" in variants.section
    assert variants.answer == ""
    assert "0, near" in part.section
    # Eleven trainings are far on cora already, under three rules each.
    assert part.section.count("| at least") == 2 * 9
    assert "The other 24 cells, not shown, are at least" in part.section
    assert "had seen scores of variants" in " ".join(part.section.split())


def test_gains_and_variations_are_shown_cell_by_cell(
    results: Path, tmp_path: Path
) -> None:
    write_study(results, 2.0)
    part = multiverse_part(results, tmp_path / "docs")
    assert "under all three rules for gated, gated_v2" in part.answer
    assert part.answer.endswith("and below 0 for no variant")
    text = part.section
    assert "docs/reproduction.md shows" in calibration_part(results).answer
    assert (tmp_path / "docs" / "figures" / "multiverse.svg").is_file()
    (row,) = (
        line
        for line in text.splitlines()
        if line.startswith("| gated |") and "of" in line
    )
    assert row.count("+2.00 to +2.00") == 3
    (undecayed,) = (
        line for line in text.splitlines() if "| gates not decayed | cora | 8 |" in line
    )
    assert undecayed.count("-0.50 (") == 3
    (theta,) = (
        line for line in text.splitlines() if "| theta not decayed | cora | 6 |" in line
    )
    assert theta.count(" 0.00 (") == 3
    assert "Not run yet" not in text


def test_what_was_not_run_is_listed_with_the_command(
    results: Path, tmp_path: Path
) -> None:
    write_study(results, 2.0)
    for path in (results / "multiverse").glob("pubmed.*"):
        path.unlink()
    # Without Pubmed the cells are not judged, so put its baselines back.
    plan, paper = load_multiverse(results), read_paper()
    near = next(plan.trainings())
    runs = [
        r
        for method in plan.baselines
        for r in runs_of(
            plan, paper["pubmed"][method], plan.config(near, "pubmed", method), 0
        )
    ]
    write_runs(runs, results / runs_file("pubmed"))
    text = multiverse_part(results, tmp_path / "docs").section
    assert "### Every cell, cora" in text
    assert "### Every cell, pubmed" not in text
    rest = text.split("### Not run yet")[1]
    assert f"{near.words}, on pubmed" in rest
    assert f"{near.words}, on cora" not in rest
    assert "gates not decayed, on pubmed" in rest
    assert "`tempergat reproduce homogeneous --run" in rest
