"""Exporting one dataset into a published CSV leaves the other datasets alone."""

import json
import shutil
from pathlib import Path

import pytest

from tempergat.base import write_into
from tempergat.base.errors import UserError
from tempergat.comparison.storage import export
from tempergat.comparison.storage.export import (
    configs_path,
    export_runs,
    read_runs,
    write_runs,
)
from tempergat.comparison.storage.store import Store
from tests.support.made_up_runs import failed_run, run

STUDIES = Path(__file__).parents[3] / "studies"


def copied(study: str, folder: Path) -> Path:
    """A copy of the published runs of a study."""
    path = STUDIES / study / "results" / "runs.csv"
    for file in (path, configs_path(path)):
        shutil.copy(file, folder)
    return folder / "runs.csv"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The paper's first table on three datasets, as it is published."""
    return copied("homogeneous", tmp_path)


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
    assert merged.replaced == {"cora": 550}
    assert merged.kept == {"citeseer": 550, "pubmed": 550}
    assert merged.sentence == (
        f"wrote 3 runs to {published}; replaced 550 of cora; kept 550 of citeseer, "
        "550 of pubmed"
    )
    assert len(read_runs(published)) == 1103
    # Configurations that no row has any more are gone, the others are untouched.
    left = json.loads(configs_path(published).read_text())
    assert len(left) < len(configs)
    assert {key: configs[key] for key in left if key in configs}.items() <= left.items()


@pytest.mark.parametrize("study", ["homogeneous", "tuned"])
def test_writing_a_published_datasets_runs_again_changes_no_byte(
    study: str, tmp_path: Path
) -> None:
    path = copied(study, tmp_path)
    before = [file.read_bytes() for file in (path, configs_path(path))]
    merged = write_runs([r for r in read_runs(path) if r.dataset == "cora"], path)
    assert merged.written == merged.replaced
    assert [file.read_bytes() for file in (path, configs_path(path))] == before


def test_a_row_with_line_breaks_stays_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    write_runs([failed_run(reason='broke, "badly"\r\nand \x0b twice\n')], path)
    before = path.read_bytes()
    write_runs([run(dataset="pubmed")], path)
    assert path.read_bytes().startswith(before)
    assert len(read_runs(path)) == 2


def test_further_columns_of_new_runs_are_added(published: Path) -> None:
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

    monkeypatch.setattr(export, "write_into", killed_at_the_csv)
    with pytest.raises(KeyboardInterrupt):
        write_runs([run(config={"learning_rate": 0.5})], published)
    assert len(read_runs(published)) == 1650


def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(
        UserError, match=r"cannot read .*notes\.configs\.json.*in a new file"
    ):
        write_runs([run()], path)
    assert path.read_text() == "a,b\n1,2\n"


def test_a_cut_row_is_refused(published: Path) -> None:
    text = published.read_text()
    published.write_text(text + "pubmed,half a row\n")
    with pytest.raises(UserError, match=r"row 1651: .*; export again"):
        write_runs([run()], published)


def test_missing_configurations_are_refused(published: Path) -> None:
    configs_path(published).unlink()
    with pytest.raises(UserError, match=r"configs\.json.*tempergat export"):
        write_runs([run()], published)
