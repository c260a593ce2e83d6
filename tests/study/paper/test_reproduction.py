"""The reproduction page and the ranks page, on made-up runs beside the real paper."""

import csv
import json
from pathlib import Path

import pytest

from tempergat.base.errors import UserError
from tempergat.study.engine import Run, Store, export_runs
from tempergat.study.paper import (
    HETEROGENEOUS,
    HOMOGENEOUS,
    below_backbone,
    numbers,
    ranks_json,
    read_paper,
    reproduce_homogeneous,
    reproduce_ranks,
    reproduction_json,
)
from tests.support.made_up_runs import METHODS, failed_run, study

FACTS = Path(numbers.__file__).with_name("results.csv")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    return folder


def keep(results: Path, runs: list[Run], name: str = "homogeneous") -> None:
    with Store(results.parent / f"{name}.sqlite") as store:
        store.put_group(runs)
        export_runs(store, results / f"{name}.csv")


def paper_means(dataset: str) -> dict[str, float]:
    return {m: cell.mean for m, cell in read_paper()[dataset].items()}


def test_the_facts_are_eleven_methods_on_eleven_datasets() -> None:
    paper = read_paper()
    assert set(paper) == {*HOMOGENEOUS, *HETEROGENEOUS}
    assert all(tuple(cells) == METHODS for cells in paper.values())
    cell = paper["cora"]["temp_gated"]
    assert (cell.mean, cell.std, cell.runs) == (81.45, 1.05, 50)


def test_runs_like_the_papers_agree_with_it(results: Path, tmp_path: Path) -> None:
    keep(results, study("cora", paper_means("cora"), range(50)))
    report = reproduce_homogeneous(results, tmp_path / "docs")
    (cora,) = report.datasets
    assert [cell.test.difference for cell in cora.cells if cell.test] == (
        pytest.approx([0.0] * 11, abs=1e-6)
    )
    assert all(cell.p_holm == pytest.approx(1.0) for cell in cora.cells)
    assert report.not_run == HOMOGENEOUS[1:]


def test_each_gain_of_the_paper_is_judged(results: Path, tmp_path: Path) -> None:
    # The paper has all eight variants above their backbones on Cora.
    means = dict.fromkeys(METHODS, 80.0) | {"gated": 83.0, "temp_only_v2": 77.0}
    keep(results, study("cora", means, range(50)))
    report = reproduce_homogeneous(results, tmp_path / "docs")
    outcomes = {claim.method: claim.outcome for claim in report.claims}
    assert outcomes["gated"] == "holds"
    assert outcomes["temp_only_v2"] == "reversed"
    others = set(outcomes) - {"gated", "temp_only_v2"}
    assert {outcomes[method] for method in others} == {"within noise"}
    page = report.page.read_text()
    assert "cora, temp_only_v2 over gatv2" in page
    assert "worse, not better" in page
    assert "- cora, temp_only over gat" not in page


@pytest.mark.parametrize(
    ("gated", "words"),
    [(83.0, "gain on cora (+"), (77.0, "lose on cora (-"), (80.0, "show no diff")],
)
def test_the_page_begins_with_what_the_gated_variants_do(
    results: Path, tmp_path: Path, gated: float, words: str
) -> None:
    means = {m: gated if "gated" in m else 80.0 for m in METHODS}
    keep(results, study("cora", means, range(50)))
    page = reproduce_homogeneous(results, tmp_path / "docs").page.read_text()
    answer = page.split("\n\n")[1].replace("\n", " ")
    assert f"the paper's gated variants together {words}" in answer
    assert ("at the last epoch they" in answer) == (gated != 80.0)


def test_a_variant_below_its_backbone_in_the_paper_is_not_a_claim(
    results: Path, tmp_path: Path
) -> None:
    # On Pubmed the paper's gated is below its gat; here it is far above.
    means = dict.fromkeys(METHODS, 78.0) | {"gated": 82.0}
    keep(results, study("pubmed", means, range(20)))
    report = reproduce_homogeneous(results, tmp_path / "docs")
    (claim,) = (claim for claim in report.claims if claim.method == "gated")
    assert claim.outcome is None
    page = " ".join(report.page.read_text().split())
    assert "better here, where the paper shows no gain" in page


def test_a_cell_far_from_the_papers_is_listed(results: Path, tmp_path: Path) -> None:
    means = paper_means("cora") | {"gcn": 75.0}
    keep(results, study("cora", means, range(30)))
    page = reproduce_homogeneous(results, tmp_path / "docs").page.read_text()
    assert "cora, gcn: ours 75.00, the paper 80.81, -" in page
    assert "| cora | 10 of 11 |" in page


def test_failed_runs_are_on_the_page(results: Path, tmp_path: Path) -> None:
    runs = study("cora", paper_means("cora"), range(5))
    keep(results, [*runs, failed_run("gcn", 5)])
    page = reproduce_homogeneous(results, tmp_path / "docs").page.read_text()
    page = " ".join(page.split())
    assert "gcn: 1 of 6 runs failed" in page
    assert "seed 5: loss is not a number at epoch 17" in page


def test_the_page_is_the_same_each_time_and_its_figures_exist(
    results: Path, tmp_path: Path
) -> None:
    keep(results, study("cora", paper_means("cora"), range(5)))
    first = reproduce_homogeneous(results, tmp_path / "one").page.read_text()
    second = reproduce_homogeneous(results, tmp_path / "two").page.read_text()
    assert first == second
    assert "](figures/scores-cora.svg)" in first
    assert (tmp_path / "one" / "figures" / "scores-cora.svg").is_file()


def test_a_few_methods_and_a_single_run_still_make_a_page(
    results: Path, tmp_path: Path
) -> None:
    keep(results, study("cora", {"gat": 80.0, "gated": 81.0}, range(1)))
    report = reproduce_homogeneous(results, tmp_path / "docs")
    (claim,) = report.claims
    assert claim.outcome == "too few runs"
    json.dumps(reproduction_json(report), allow_nan=False)


def test_results_without_a_dataset_of_the_table_are_refused(
    results: Path, tmp_path: Path
) -> None:
    keep(results, study("csbm", {"gat": 80.0}, range(2)))
    with pytest.raises(UserError, match="has no run on cora"):
        reproduce_homogeneous(results, tmp_path / "docs")


def test_a_missing_table_of_runs_names_the_remedy(
    results: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"homogeneous\.csv.*reproduce export"):
        reproduce_homogeneous(results, tmp_path / "docs")


def test_every_cell_below_its_backbone_is_listed() -> None:
    """Counted again from the file, by name alone."""
    with FACTS.open() as file:
        means = {
            (row["dataset"], row["method"]): float(row["mean"])
            for row in csv.DictReader(file)
        }
    expected = {
        (dataset, method)
        for (dataset, method), mean in means.items()
        if method not in ("gcn", "gat", "gatv2")
        and mean < means[dataset, "gatv2" if method.endswith("_v2") else "gat"]
    }
    found = below_backbone(read_paper())
    assert {(cell.dataset, cell.method) for cell in found} == expected
    assert len(found) == len(expected) == 26
    assert all(cell.difference < 0 for cell in found)


def test_the_papers_ranks_are_drawn_with_their_critical_difference(
    results: Path, tmp_path: Path
) -> None:
    report = reproduce_ranks(results, tmp_path / "docs")
    both, homogeneous, heterogeneous = report.figures
    assert both.table.critical_difference == pytest.approx(4.55, abs=0.005)
    assert homogeneous.table.critical_difference == pytest.approx(6.16, abs=0.005)
    assert heterogeneous.table.critical_difference == pytest.approx(6.75, abs=0.005)
    # By hand from the table: temp_gated is 1, 2, 10, 7, 6 and 3.
    assert homogeneous.table.average["temp_gated"] == pytest.approx(29 / 6)
    for figure in report.figures:
        assert figure.path.is_file()
    assert [line.split(":")[0] for line in report.not_drawn] == [
        "Ours, homogeneous",
        "Ours, heterogeneous",
    ]
    page = report.page.read_text()
    assert "In 26 of them (30 %)" in page
    assert "consistently improve" in page
    # Both tables together tell temp_gated_v2 from gat; five datasets do not.
    section = " ".join(page.split("##")[1].split())
    assert "temp_gated_v2 (3.68) than gat, gcn" in section


def test_our_ranks_are_drawn_from_two_datasets_on(
    results: Path, tmp_path: Path
) -> None:
    runs = study("cora", paper_means("cora"), range(3))
    keep(results, runs)
    one = reproduce_ranks(results, tmp_path / "docs")
    assert len(one.figures) == 3
    assert "average ranks need two" in one.not_drawn[0]
    keep(results, study("pubmed", paper_means("pubmed"), range(3)))
    two = reproduce_ranks(results, tmp_path / "docs")
    (ours,) = (figure for figure in two.figures if "Ours" in figure.title)
    assert ours.table.datasets == ("cora", "pubmed")
    page = " ".join(two.page.read_text().split())
    assert "with 2 datasets this comparison tells next to nothing" in page
    json.dumps(ranks_json(two), allow_nan=False)
