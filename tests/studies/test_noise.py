"""Page's test, and the planned tests of docs/noise.md, once more with csv and scipy."""

import bz2
import csv
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from scipy import stats

from studies import results
from studies.noise import learned, tables
from studies.noise.learned import FRESH, SECOND, trends
from studies.noise.tables import PLANNED, gain_tests
from studies.noise.trends import page_p, rises
from studies.results import runs_path, settings_path

DATASETS = ("cora", "citeseer", "pubmed")
GATE_FIRST = {
    "gated_first": "gat",
    "gated_temp": "gat",
    "gated_first_v2": "gatv2",
    "gated_temp_v2": "gatv2",
}


def rows(study: str, dataset: str) -> list[dict[str, Any]]:
    with bz2.open(runs_path(f"{study}/{dataset}.csv"), "rt", newline="") as file:
        found = list(csv.DictReader(file))
    clean = {"noise": "none", "level": 0.0, "tau": None}
    return [row | clean | json.loads(row["condition"] or "{}") for row in found]


def gate_first_p(study: str, noise: str) -> float:
    """The paired t-test over seeds of the mean over methods, levels and datasets."""
    gains = defaultdict(list)
    for dataset in DATASETS:
        found = [row for row in rows(study, dataset) if row["noise"] == noise]
        keys = ("seed", "level", "tau", "method")
        score = {
            tuple(r[k] for k in keys): float(r["best_val_accuracy_test"]) for r in found
        }
        for (seed, level, tau, method), test in score.items():
            if method in GATE_FIRST:
                plain = score[seed, level, tau, GATE_FIRST[method]]
                gains[seed].append(test - plain)
    return float(stats.ttest_1samp([mean(g) for g in gains.values()], 0.0).pvalue)


@pytest.mark.parametrize(("study", "noise"), [(SECOND, "missing"), (FRESH, "gaussian")])
def test_gains_are_tested_as_scipy_does(study: str, noise: str) -> None:
    found = gain_tests(study, PLANNED[study])[f"gate-first {noise}"]
    assert found.t_p == pytest.approx(gate_first_p(study, noise))


def test_the_trend_of_t_is_tested_as_scipy_does() -> None:
    """In the cell with the largest p, which Holm's correction leaves as it is."""
    values = defaultdict(list)
    for row in rows(SECOND, "pubmed"):
        if row["temperatures_last"] and row["noise"] != "missing":
            key = int(row["seed"]), row["level"]
            values[key].append(float(row["temperatures_last"].split()[1]))
    table = np.reshape([mean(values[key]) for key in sorted(values)], (10, 4))
    p = 2 * stats.page_trend_test(table, method="asymptotic").pvalue
    found = trends("temperature")["pubmed", 2]
    assert found.direction == "rises"
    assert found.p == pytest.approx(p)


def clear(caches: Iterable[Any]) -> None:
    for cache in caches:
        cache.cache_clear()


def test_the_papers_fourth_dataset_gets_panels_once_it_has_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "noise/results/epochs"
    folder.mkdir(parents=True)
    for dataset in DATASETS:
        path = runs_path(f"{SECOND}/{dataset}.csv")
        (folder / path.name).symlink_to(path)
    pubmed = bz2.decompress((folder / "pubmed.csv.bz2").read_bytes())
    arxiv = pubmed.replace(b"\npubmed,", b"\nogbn-arxiv,")
    (folder / "ogbn-arxiv.csv.bz2").write_bytes(bz2.compress(arxiv))
    (folder.parent / "settings.csv").symlink_to(settings_path(SECOND))
    before = tables.accuracy()
    caches = (results.read_csv, results.read_runs, learned.read_study)
    caches += (learned.learned_values, learned.mean_values, learned.trends)
    with monkeypatch.context() as patch:
        patch.setattr(results, "STUDIES", tmp_path)
        clear(caches)
        figure = tables.figure_4()
        assert tables.accuracy() == before
    clear(caches)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert sorted(titles) == sorted(
        f"{dataset}, {backbone}"
        for dataset in (*DATASETS, "ogbn-arxiv")
        for backbone in ("GAT", "GATv2")
        for _ in ("temperature", "gate")
    )
    assert "not run" not in figure.legends[0].get_title().get_text()


@pytest.mark.parametrize(
    ("first", "column", "noises", "methods"),
    [
        (0, "temperatures_last", "none gaussian", "temp_only temp_gated gated_temp"),
        (6, "gate_means_last", "none missing", "gated temp_gated gated_temp"),
    ],
)
def test_figure_4_shows_the_papers_methods_at_the_last_epoch_by_layer(
    first: int, column: str, noises: str, methods: str
) -> None:
    figure = tables.figure_4()
    assert len(figure.axes) == 12
    assert "ogbn-arxiv: not run" in figure.legends[0].get_title().get_text()
    values = defaultdict(list)
    for row in rows(SECOND, "pubmed"):
        if row["method"] in methods.split() and row["noise"] in noises.split():
            values[row["level"]].append(float(row[column].split()[1]))
    panels = {a.get_title(loc="left"): a for a in figure.axes[first : first + 6]}
    lines = {line.get_label(): line for line in panels["pubmed, GAT"].get_lines()}
    assert lines["layer 2"].get_ydata() == pytest.approx(
        [mean(values[level]) for level in sorted(values)]
    )


def rising_values() -> np.ndarray:
    return np.arange(5.0) + 0.4 * np.random.default_rng(0).standard_normal((6, 5))


def test_page_s_test_is_two_sided() -> None:
    rising = rising_values()
    one_sided = stats.page_trend_test(rising, method="asymptotic").pvalue
    assert page_p(rising) == pytest.approx(2 * one_sided)
    assert page_p(-rising) == pytest.approx(page_p(rising))
    assert page_p(np.ones((6, 5))) == 1.0


def test_values_that_differ_in_the_last_bits_show_no_trend() -> None:
    assert page_p(np.ones((6, 5)) + 1e-15 * np.arange(5.0)) == 1.0


def test_the_sign_of_the_trend_is_that_of_the_ranks() -> None:
    assert rises(rising_values())
    assert not rises(-rising_values())
