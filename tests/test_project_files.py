"""The README, the changelog and the files for maintainers agree with the project."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import tempergat
from benchmarks import front_page, pages
from studies.default import tables as default
from studies.when import tables as when
from tempergat.comparison.paper import BACKBONE_OF, read_paper
from tempergat.nn import METHODS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))


def _yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_every_link_to_a_file_leads_somewhere(name: str) -> None:
    text = (ROOT / name).read_text()
    targets = re.findall(r'\]\(([^)#]+)|(?:src|srcset)="([^"]+)"', text)
    files = [link or image for link, image in targets]
    assert [file for file in files if not (ROOT / file).exists()] == []


@pytest.mark.parametrize(
    ("name", "colours"),
    [("front-page", front_page.LIGHT), ("front-page-dark", front_page.DARK)],
)
def test_the_readmes_picture_shows_the_measurements(
    name: str, colours: front_page.Colours
) -> None:
    rows = front_page.read_rows(ROOT / front_page.RESULTS)
    drawn = (ROOT / front_page.FIGURES / f"{name}.svg").read_text()
    assert drawn == front_page.picture(rows, colours), "python -m benchmarks.front_page"
    assert {row.layer for row in rows if row.ms is None} == {"PyG GATv2Conv"}


def test_the_readme_quotes_the_measurements_and_the_findings() -> None:
    text = " ".join(README.split())
    (epoch,) = re.findall(r"an epoch of three layers takes ([\d.]+ s)", text)
    epochs = pages.pick(pages.read("sampling_cuda"), graph="products")
    assert epoch in {
        f"{float(row['epoch_s']):.1f} s" for row in epochs if row["epoch_s"]
    }
    quoted = re.findall(r"in the median ([\d.]+) points with GAT and ([\d.]+)", text)
    medians = when.NUMBERS["medians"]("below", "residual-plain")
    assert quoted == [tuple(medians.replace("+", "").split(" and "))]
    near = {default.NUMBERS["within"](name) for name in ("gat-gcn", "gatv2-gcn")}
    assert re.findall(r"within one point of it on (\d+ of \d+)", text) == [*near]
    (row,) = [line for line in when.use_this().splitlines() if "a temperature" in line]
    on_real_graphs = row.split("|")[-2]
    helps_nowhere = " 0/0 better" in on_real_graphs and "of 18" in on_real_graphs
    assert ("on none of 18 graphs is it shown" in text) == helps_nowhere


def test_the_papers_largest_gains_are_on_graphs_that_could_not_be_had() -> None:
    largest = {
        dataset: max(
            cells[method].mean - cells[backbone].mean
            for method, backbone in BACKBONE_OF.items()
        )
        for dataset, cells in read_paper().items()
    }
    ranked = sorted(largest, key=lambda dataset: -largest[dataset])
    trained = {"cora", "citeseer", "pubmed"}
    before = next(place for place, name in enumerate(ranked) if name in trained)
    words = {4: "four"}
    for page in ("README.md", "docs/index.md", "docs/paper.md"):
        text = " ".join((ROOT / page).read_text().split())
        assert f"hold its {words[before]} largest gains" in text, page


def test_all_results_of_studies_are_less_than_8_megabytes_of_a_clone() -> None:
    files = (ROOT / "studies").glob("*/results/**/*")
    assert sum(path.stat().st_size for path in files if path.is_file()) < 8_000_000


def test_one_version_is_named_everywhere() -> None:
    version = tempergat.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    newest = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert project["version"] == _yaml("CITATION.cff")["version"] == version
    assert newest[0] == version


def test_the_commit_hooks_run_the_checks_of_make_test() -> None:
    makefile = (ROOT / "Makefile").read_text()
    recipe = makefile.partition("\ntest: ")[2].partition("\n\n")[0]
    checks = re.findall(r"\$\(BIN\)/(ruff \w+|[\w-]+)", recipe)
    hooks = _yaml(".pre-commit-config.yaml")["repos"][0]["hooks"]
    entries = [hook["entry"] for hook in hooks]
    assert len(checks) == 4
    for check, entry in zip(checks, entries, strict=False):
        assert entry.startswith(f".venv/bin/{check}")
    folders = re.findall(r"ruff check (.*)", recipe)[0].split()
    assert hooks[0]["files"] == hooks[1]["files"] == f"^({'|'.join(folders)})/"


def test_the_oldest_versions_allowed_are_those_that_tests_run_with() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *extras["compare"], *extras["parquet"]]
    asked += [*extras["ray"], *extras["tune"]]
    floors = {re.sub(r"(\.0)+$", "", one) for one in asked if ">=" in one}
    pins = (ROOT / "constraints-oldest.txt").read_text()
    pinned = re.findall(r"^(?!triton)([\w-]+)==([\d.]+?)(?:\.0)*$", pins, re.M)
    assert floors == {f"{name}>={version}" for name, version in pinned}
    command = ["make", "--dry-run", "test-oldest"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    assert " .venv-oldest/bin/python -m pytest " in said


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_or_template_is_yaml_and_calls_what_make_has(path: Path) -> None:
    text = path.read_text()
    assert yaml.safe_load(text)["name"]
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"run: make ([\w-]+)", text)) <= targets


def test_a_published_readme_says_how_to_install_what_is_published(
    tmp_path: Path,
) -> None:
    steps = _yaml(".github/workflows/wheels.yml")["jobs"]["pure"]["steps"]
    (edit,) = [step["run"] for step in steps if "README" in step.get("name", "")]
    (tmp_path / "README.md").write_text(README)
    subprocess.run(["bash", "-e", "-c", edit], cwd=tmp_path, check=True)
    published = (tmp_path / "README.md").read_text()
    assert re.findall(r"^ +(pip install .*)$", published, re.MULTILINE)[0].startswith(
        ("pip install tempergat  ", "pip install 'tempergat[")
    )
    assert "pip install ." not in published
    assert "nothing is on PyPI yet" not in published


def test_the_table_of_methods_names_them_all() -> None:
    page = (ROOT / "docs" / "comparing.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (yes|no) \|$", page, re.MULTILINE)
    assert rows == [
        (name, method.description, "yes" if method.in_paper else "no")
        for name, method in METHODS.items()
    ]
