"""The rule that `diagnose` does not recommend, and the runs that test it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from studies import results
from studies.diagnose.study import (
    GENERATED,
    GRAPHS,
    PLAN,
    TABLE,
    Finding,
    full_configs,
    load_graph,
    picked_method,
    stages,
)
from studies.results import read_csv
from studies.runner import Runner
from tempergat.comparison.storage.store import Store


@pytest.mark.parametrize(
    ("means", "seeds", "pick", "finding"),
    [
        ({"gcn": 70.0, "gat": 71.0, "temp_gated": 76.0}, 8, "temp_gated", "shown"),
        ({"gcn": 60.0, "gat": 71.0, "temp_gated": 71.1}, 8, "gat", "no difference"),
        ({"gcn": 80.0, "gat": 70.0, "temp_gated": 70.0}, 8, "gcn", "shown"),
        ({"gcn": 60.0, "gat": 70.0, "temp_gated": 90.0}, 1, "gat", "too few runs"),
    ],
)
def test_only_what_was_shown_to_help_is_picked(
    means: dict[str, float], seeds: int, pick: str, finding: Finding
) -> None:
    draw = np.random.default_rng(1)
    scores: dict[str, dict[int, float | None]] = {
        method: dict(enumerate((mean + draw.normal(0, 0.8, seeds)).tolist()))
        for method, mean in means.items()
    }
    assert picked_method(scores) == (pick, finding)


def test_the_graphs_are_those_of_the_table() -> None:
    rows = read_csv(TABLE).groupby("graph").first()
    assert set(rows.index) == set(GRAPHS)
    for name, parameters in GENERATED.items():
        assert rows.loc[name, list(parameters)].to_dict() == parameters
    graph = load_graph("csbm-07")
    assert (graph.name, graph.data.num_nodes) == ("csbm-07", GENERATED["csbm-07"]["n"])


@pytest.mark.parametrize("name", ["actor", "cora"])
def test_the_study_keeps_the_settings_of_its_published_rows(name: str) -> None:
    assert not any(config.residual for config in full_configs(name))


def test_a_graph_without_rows_is_trained_and_the_others_keep_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = results.result_path(TABLE).read_text().splitlines()
    path = tmp_path / "diagnose" / "results" / "validation.csv"
    path.parent.mkdir(parents=True)
    others = [line for line in committed if not line.startswith("csbm-07,")]
    path.write_text("\n".join(others) + "\n")
    monkeypatch.setattr(results, "STUDIES", tmp_path)
    for part in ("screening", "reference"):
        monkeypatch.setitem(PLAN, part, PLAN[part] | {"seeds": 2, "epochs": 1})
    with Store(tmp_path / "store.sqlite") as store:
        runner = Runner(store, torch.device("cpu"))
        assert runner.run(stages("csbm-07")) == 2 * 2 * 11
        assert runner.run(stages("csbm-07")) == 0
    made = path.read_text().splitlines()
    assert [line for line in made if not line.startswith("csbm-07,")] == others
    kept = [line.split(",")[:14] for line in committed if "csbm-07" in line]
    assert [line.split(",")[:14] for line in made if "csbm-07" in line] == kept
