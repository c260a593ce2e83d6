"""Results are completed by training what is missing, and by nothing else."""

import csv
import shutil
from pathlib import Path

import pytest

from tempergat.base.errors import UserError
from tempergat.data import Dataset
from tempergat.study.engine import read_runs
from tempergat.study.engine.sweeps import sweeping as engine
from tempergat.study.reproduce import PAGES, Workspace, plan_page, run_page
from tempergat.study.reproduce.estimate import memory_bytes
from tests.support.small_study import RUNS, make_small, tiny_cora, workspace

PAGE = PAGES["homogeneous"]
NEEDED = 11 * RUNS


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_small(monkeypatch, tmp_path)
    return tmp_path / "results"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study of both datasets, trained once."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch, folder)
        outcome = run_page(PAGE, workspace(folder))
    assert outcome.not_done == {}
    return folder


@pytest.fixture
def complete(finished: Path, tmp_path: Path) -> Path:
    """The CSV of a finished study, and its store, to be changed by a test."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path / "results" / "homogeneous.csv"


def refuse_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("something was trained")

    monkeypatch.setattr(engine, "train_group", refuse)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def identities_and_scores(path: Path) -> list[dict[str, str]]:
    """The part of a run that does not depend on the other runs of its group.

    The last bits of the learned values do.
    """
    fields = ("dataset", "method", "seed", "config_hash", "status")
    return [
        {k: v for k, v in row.items() if k in fields or k.endswith("_test")}
        for row in rows_of(path)
    ]


def test_from_nothing_to_the_page(complete: Path, tmp_path: Path) -> None:
    assert len(read_runs(complete)) == 2 * NEEDED
    written = PAGE.write(complete.parent, tmp_path / "docs")
    assert written.path == tmp_path / "docs" / "reproduction.md"
    assert "## cora" in written.path.read_text()


def test_what_is_complete_is_not_trained_again(
    complete: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_training(monkeypatch)
    before = complete.read_bytes()
    outcome = run_page(PAGE, workspace(tmp_path, out="other"))
    assert outcome.done == ()
    assert complete.read_bytes() == before


def test_missing_runs_are_trained_and_all_other_rows_stay(
    complete: Path, tmp_path: Path
) -> None:
    text = complete.read_text()
    whole = identities_and_scores(complete)
    lines = text.splitlines(keepends=True)
    gone = [lines[5], lines[20], lines[21]]
    complete.write_text("".join(line for line in lines if line not in gone))
    # A new folder: nothing of the study is in its store.
    place = workspace(tmp_path, out="other")
    cora, pubmed = (job.stock(place) for job in PAGE.jobs(place))
    assert (cora.present, cora.needed) == (NEEDED - 3, NEEDED)
    assert sum(batch.runs for batch in cora.missing) == 3
    assert pubmed.is_complete
    (line,) = run_page(PAGE, place).done
    assert f"wrote {NEEDED} runs" in line
    assert f"kept {NEEDED} of pubmed" in line
    assert identities_and_scores(complete) == whole
    assert set(complete.read_text().splitlines()) > set(text.splitlines()) - {
        row.strip("\n") for row in gone
    }


def test_runs_of_another_device_are_not_combined_with_ours(
    complete: Path, tmp_path: Path
) -> None:
    lines = complete.read_text().splitlines(keepends=True)
    moved = [line.replace(",cpu,", ",cuda (H),") for line in lines]
    complete.write_text("".join(moved))
    place = workspace(tmp_path)
    # A complete study counts wherever it was made.
    assert all(job.stock(place).is_complete for job in PAGE.jobs(place))
    complete.write_text("".join(moved[:5] + moved[6:]))
    place = workspace(tmp_path)
    cora, pubmed = (job.stock(place) for job in PAGE.jobs(place))
    assert cora.present == 0
    assert cora.elsewhere == {"cuda (H)": NEEDED - 1}
    assert pubmed.is_complete
    run_page(PAGE, place)
    devices = {(run.dataset, run.device) for run in read_runs(complete)}
    assert devices == {("cora", "cpu"), ("pubmed", "cuda (H)")}


def test_a_plan_counts_and_estimates_and_trains_nothing(
    complete: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete.write_text("".join(complete.read_text().splitlines(keepends=True)[:-1]))
    refuse_training(monkeypatch)
    plan = plan_page(PAGE, workspace(tmp_path), tmp_path / "docs")
    cora, pubmed = plan.jobs
    assert (cora.present, cora.needed, cora.time_s) == (NEEDED, NEEDED, None)
    assert (pubmed.present, pubmed.needed) == (NEEDED - 1, NEEDED)
    last = max(read_runs(complete), key=lambda run: (run.dataset, run.method))
    assert pubmed.time_s == pytest.approx(last.time_s, rel=2.0)
    assert "runs on pubmed with cpu" in pubmed.time_source
    assert pubmed.memory_bytes is not None
    assert pubmed.memory_bytes > 0
    assert plan.writes == (
        str(complete),
        str(tmp_path / "docs" / "reproduction.md"),
        str(tmp_path / "docs" / "figures" / "homogeneous-gains.*"),
        str(tmp_path / "docs" / "figures" / "scores-*"),
        str(tmp_path / "docs" / "figures" / "multiverse.*"),
    )


def test_memory_is_estimated_from_counts_where_the_graph_is_not_here(
    tmp_path: Path,
) -> None:
    place = workspace(tmp_path)
    cora, pubmed = (
        memory_bytes(job, job.stock(place).missing, place, is_local=False)
        for job in PAGE.jobs(place)
    )
    assert cora is not None
    assert pubmed is not None
    # At least the features of one run, 1,433 of 2,708 nodes and 500 of 19,717.
    assert cora > 1433 * 2708 * 4
    assert pubmed > 500 * 19_717 * 4


def test_the_time_on_an_unmeasured_dataset_is_scaled_by_its_size(
    complete: Path, tmp_path: Path
) -> None:
    lines = complete.read_text().splitlines(keepends=True)
    complete.write_text("".join(x for x in lines if not x.startswith("pubmed")))
    shutil.rmtree(tmp_path / "out")
    _, pubmed = plan_page(PAGE, workspace(tmp_path), tmp_path).jobs
    measured = sum(run.time_s for run in read_runs(complete))
    # Pubmed has 19,717 nodes and 88,648 edges, Cora 2,708 and 10,556.
    scale = (19_717 + 88_648) / (2_708 + 10_556)
    assert pubmed.time_s == pytest.approx(scale * measured)
    assert pubmed.time_source.endswith("scaled by nodes and edges")


def test_without_finished_runs_the_time_is_unknown(tmp_path: Path) -> None:
    cora, _ = plan_page(PAGE, workspace(tmp_path), tmp_path).jobs
    assert cora.time_s is None
    assert "no finished runs on cpu" in cora.time_source


def test_one_dataset_that_fails_does_not_stop_the_others(
    results: Path, tmp_path: Path
) -> None:
    def load(name: str) -> Dataset:
        if name == "cora":
            raise UserError("there is no network")
        return tiny_cora(name)

    here = workspace(tmp_path)
    outcome = run_page(PAGE, Workspace(here.results, here.out, here.device, load))
    assert outcome.not_done == {"cora": "there is no network"}
    assert {run.dataset for run in read_runs(results / "homogeneous.csv")} == {"pubmed"}


def test_a_dataset_the_page_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no dataset 'reddit'.*cora, pubmed"):
        run_page(PAGE, workspace(tmp_path), ["reddit"])
