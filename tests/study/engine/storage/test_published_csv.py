"""Exporting one dataset into a published CSV leaves the other datasets alone."""

import json
import shutil
from pathlib import Path

import pytest

from tempergat.base import write_into
from tempergat.base.errors import UserError
from tempergat.study.engine.storage import published_csv
from tempergat.study.engine.storage.export import (
    configs_path,
    export_runs,
    read_runs,
    write_runs,
)
from tempergat.study.engine.storage.store import Store
from tests.support.made_up_runs import failed_run, run

RESULTS = Path(__file__).parents[4] / "results"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The calibration of three datasets, as it is published."""
    for file in (
        RESULTS / "calibration.csv",
        configs_path(RESULTS / "calibration.csv"),
    ):
        shutil.copy(file, tmp_path)
    return tmp_path / "calibration.csv"


def lines_of(path: Path, dataset: str) -> list[str]:
    lines = path.read_text().splitlines(keepends=True)
    return [line for line in lines if line.startswith(f"{dataset},")]


def test_one_dataset_replaces_its_own_rows_only(
    published: Path, tmp_path: Path
) -> None:
    before = {name: lines_of(published, name) for name in ("citeseer", "pubmed")}
    configs = json.loads(configs_path(published).read_text())
    with Store(tmp_path / "store") as store:
        store.put_group([run(seed=seed) for seed in range(3)])
        merged = export_runs(store, published)
    assert {name: lines_of(published, name) for name in before} == before
    assert len(lines_of(published, "cora")) == 3
    assert merged.written == {"cora": 3}
    assert merged.replaced == {"cora": 520}
    assert merged.kept == {"citeseer": 520, "pubmed": 520}
    assert merged.sentence == (
        f"wrote 3 runs to {published}; replaced 520 of cora; kept 520 of citeseer, "
        "520 of pubmed"
    )
    assert len(read_runs(published)) == 1043
    # Configurations that no row has any more are gone, the others are untouched.
    left = json.loads(configs_path(published).read_text())
    assert len(left) < len(configs)
    assert {key: configs[key] for key in left if key in configs}.items() <= left.items()


@pytest.mark.parametrize("table", ["calibration", "homogeneous", "tuned"])
def test_writing_a_published_datasets_runs_again_changes_no_byte(
    table: str, tmp_path: Path
) -> None:
    for file in (RESULTS / f"{table}.csv", RESULTS / f"{table}.configs.json"):
        shutil.copy(file, tmp_path)
    path = tmp_path / f"{table}.csv"
    merged = write_runs([r for r in read_runs(path) if r.dataset == "cora"], path)
    assert merged.written == merged.replaced
    for file in (path, configs_path(path)):
        assert file.read_bytes() == (RESULTS / file.name).read_bytes()


def test_a_row_with_line_breaks_stays_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    write_runs([failed_run(reason='broke, "badly"\r\nand \x0b twice\n')], path)
    before = path.read_bytes()
    write_runs([run(dataset="pubmed")], path)
    assert path.read_bytes().startswith(before)
    assert len(read_runs(path)) == 2


def test_further_columns_of_new_runs_do_not_change_the_rows_that_stay(
    published: Path,
) -> None:
    before = lines_of(published, "pubmed")
    write_runs([run(parameter_count=7)], published)
    assert lines_of(published, "pubmed") == before
    write_runs([run(numerics=2)], published)
    (again,) = (r for r in read_runs(published) if r.dataset == "cora")
    assert again.numerics == 2


def test_a_process_killed_between_the_two_files_leaves_readable_runs(
    published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed_at_the_csv(folder: Path, name: str, content: str) -> Path:
        if name.endswith(".csv"):
            raise KeyboardInterrupt
        return write_into(folder, name, content)

    monkeypatch.setattr(published_csv, "write_into", killed_at_the_csv)
    with pytest.raises(KeyboardInterrupt):
        write_runs([run(config={"learning_rate": 0.5})], published)
    assert len(read_runs(published)) == 1560


def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="does not have the columns of runs"):
        write_runs([run()], path)
    assert path.read_text() == "a,b\n1,2\n"


def test_a_cut_row_is_refused(published: Path) -> None:
    text = published.read_text()
    published.write_text(text + "pubmed,half a row\n")
    with pytest.raises(UserError, match="line 1562, has 2 cells instead of 29"):
        write_runs([run()], published)


def test_missing_configurations_are_refused(published: Path) -> None:
    configs_path(published).unlink()
    with pytest.raises(UserError, match=r"configs\.json.*restore it"):
        write_runs([run()], published)
