"""Further searches of every method: made, continued, shared, and judged."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from tempergat.base import UserError
from tempergat.data import Dataset, csbm
from tempergat.study.engine import Run, Store, read_runs, write_runs
from tempergat.study.tuning.repeat_runs import count_searches, run_repeats
from tempergat.study.tuning.repeats import (
    REPEATS_FILE,
    REPEATS_TRIALS_FILE,
    RepeatedGraph,
    RepeatsPlan,
    load_repeats,
    read_repeats,
)
from tempergat.study.tuning.repeats_section import (
    best_in_any_search,
    repeats_answer,
    repeats_section,
)
from tempergat.study.tuning.variants import TunedVariants, read_variants
from tests.study.tuning.test_variants import found as first_search
from tests.support.made_up_runs import run
from tests.support.tiny_graph import write_recipe

CPU = torch.device("cpu")
REPORTED = range(50, 53)


def write_plan(folder: Path, graph: str, base: str, methods: list[str]) -> RepeatsPlan:
    values = {
        "graphs": {graph: base},
        "methods": methods,
        "trials": 3,
        "seeds": 2,
        "repeats": [
            {"sampler_seed": 1, "first_seed": 10},
            {"sampler_seed": 2, "first_seed": 20},
        ],
        "reported_seeds": f"{REPORTED.start} to {REPORTED.stop - 1}",
    }
    (folder / "tuned_variants").mkdir(parents=True, exist_ok=True)
    (folder / "tuned_variants" / "repeats.yaml").write_text(yaml.safe_dump(values))
    plan = load_repeats(folder)
    assert plan is not None
    return plan


class Place:
    """A tiny graph with a folder of results and one for the store."""

    def __init__(self, folder: Path) -> None:
        recipe = write_recipe(folder / "recipe.yaml", epochs=2)
        self.results, self.out = folder / "results", folder / "out"
        self.graph: Dataset = csbm(n=60, a=10.0, b=4.0, d=8, mu=2.0)
        self.plan = write_plan(
            self.results, self.graph.name, str(recipe), ["gat", "gated"]
        )

    def run(self, stop_after: int | None = None) -> int:
        def show(done: int, of: int) -> None:
            if done == stop_after:
                raise KeyboardInterrupt

        with Store(self.out / "store.sqlite") as store:
            return run_repeats(self.plan, self.graph, self.results, store, CPU, show)

    @property
    def runs(self) -> dict[tuple[str, str, int], float]:
        return {
            (one.method, one.config_hash, one.seed): one.scores["last_epoch"].test
            for one in read_runs(self.results / REPEATS_FILE)
        }

    @property
    def table(self) -> str:
        return (self.results / REPEATS_TRIALS_FILE).read_text()

    @property
    def counts(self) -> tuple[int, int]:
        return count_searches(self.plan, self.results, self.graph.name)


def test_searches_that_were_stopped_continue_to_the_same_end(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "stopped").mkdir()
    whole, stopped = Place(tmp_path / "whole"), Place(tmp_path / "stopped")
    assert whole.run() == 4
    with pytest.raises(KeyboardInterrupt):
        stopped.run(stop_after=1)
    assert stopped.counts == (4, 1)
    assert stopped.run() == 4
    assert stopped.runs == whole.runs
    assert stopped.table == whole.table
    seeds = {seed for _, _, seed in whole.runs}
    assert seeds == {10, 11, 20, 21, *REPORTED}


def test_searches_continue_from_results_where_the_store_is_lost(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        place.run(stop_after=3)
    before = place.runs
    place.out = tmp_path / "other"
    assert place.run() == 4
    assert before.items() <= place.runs.items()
    assert place.table.count("True") == 4


def test_two_processes_share_the_searches(tmp_path: Path) -> None:
    place = Place(tmp_path)
    counts: list[int] = []
    workers = [
        threading.Thread(target=lambda: counts.append(place.run())) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert counts == [4, 4]
    assert place.table.count("True") == 4


def made_up(
    folder: Path, differences: Mapping[str, float], lacking: str = ""
) -> tuple[TunedVariants, dict[str, RepeatedGraph]]:
    """Two repeats on cora in which variants differ from gat as given, in percent."""
    first = first_search(folder)
    plan = write_plan(folder, "cora", "paper/cora", ["gcn", "gat", *differences])
    runs: list[Run] = []
    lines = ["dataset,repeat,method,trial,config_hash,val_mean,failed,chosen"]
    for number, repeat in enumerate(plan.repeats, start=1):
        for method in plan.methods:
            score = 0.8 + differences.get(method, 0.0) / 100 + number / 1000
            config = {
                "method": method,
                "weight_decay": float(number),
                "selection": "best_val_accuracy",
            }
            one = run(method, repeat.first_seed, score, config=config)
            runs += [one, replace(one, seed=repeat.first_seed + 1)]
            if f"{method} {number}" != lacking:
                runs += [replace(one, seed=seed) for seed in REPORTED]
            for trial in range(plan.trials):
                chosen = trial == 0
                lines.append(
                    f"cora,{number},{method},{trial},{one.config_hash},79.0,0,{chosen}"
                )
    write_runs(runs, folder / REPEATS_FILE)
    (folder / REPEATS_TRIALS_FILE).write_text("\n".join(lines) + "\n")
    return first, read_repeats(folder, first.graphs)


def test_a_difference_of_the_same_size_in_every_search_survives(tmp_path: Path) -> None:
    # In the first search: +2.00, 0.00 and -7.00.
    first, repeated = made_up(
        tmp_path, {"gated": 2.1, "temp_only": 0.3, "temp_gated": -1.0}
    )
    cora = repeated["cora"]
    assert cora.searches == 3
    assert cora.differences["gated"] == pytest.approx([2.0, 2.1, 2.1])
    assert cora.means["gat"] == pytest.approx([82.0, 80.1, 80.2])
    assert [v for v in cora.differences if cora.survives(v)] == ["gated"]
    assert cora.same_sign("temp_gated") == 3
    plan = load_repeats(tmp_path)
    assert plan is not None
    answer = repeats_answer(plan, repeated, first)
    assert "on cora, 1 of the 1 gains and 0 of the 1 losses of the first" in answer
    assert "search survive (gated on cora +2.07)" in answer
    assert "these remain: gated on cora +2.07" in answer
    assert "On pubmed every method had one search only" in answer
    assert best_in_any_search(first, repeated)["cora"] == ("gated", pytest.approx(84.0))
    section = repeats_section(plan, repeated)
    assert "| gated | +2.00 | +2.10 | +2.10 | +2.07 |" in section


def made_of(differences: Mapping[str, list[float]]) -> RepeatedGraph:
    gat = [80.0, 81.0, 79.0, 80.0]
    means = {
        name: [mean + value for mean, value in zip(gat, values, strict=True)]
        for name, values in differences.items()
    }
    return RepeatedGraph({"gat": gat, **means}, differences, [1, 2, 3], 3, ["cpu"])


@pytest.mark.parametrize(
    ("gated", "expected"),
    [
        (
            [0.85, 1.55, 0.42, 1.27],
            "no gain remains. Over the repeats alone, without the first search, none",
        ),
        ([1.0, 1.1, 0.9, 1.0], "these remain: gated on cora +1.00"),
        ([1.0, -1.0, 0.5, 0.0], "So no variant is shown to beat its tuned backbone"),
    ],
)
def test_the_answer_says_what_a_correction_leaves(
    gated: list[float], expected: str, tmp_path: Path
) -> None:
    first = first_search(tmp_path)
    plan = write_plan(tmp_path, "cora", "paper/cora", ["gat", "gated"])
    others = {"temp_only": [0.1, -0.2, 0.0, 0.1], "temp_gated": [-1.0, 2.0, 0.5, -0.4]}
    found = made_of({"gated": gated, **others})
    assert expected in repeats_answer(plan, {"cora": found}, first)


def test_a_repeat_that_lacks_runs_is_not_used(tmp_path: Path) -> None:
    _, repeated = made_up(tmp_path, {"gated": 2.1}, lacking="gcn 2")
    assert repeated["cora"].repeats == [1]
    plan = load_repeats(tmp_path)
    assert plan is not None
    assert "Of 2 repeats, 1 have all their runs" in repeats_section(plan, repeated)


def test_a_search_that_did_not_end_is_not_used(tmp_path: Path) -> None:
    first, _ = made_up(tmp_path, {"gated": 2.1})
    table = tmp_path / REPEATS_TRIALS_FILE
    lines = table.read_text().splitlines()
    table.write_text("\n".join(lines[:-1]) + "\n")
    assert read_repeats(tmp_path, first.graphs)["cora"].repeats == [1]


def test_a_chosen_setting_that_is_not_the_best_is_refused(tmp_path: Path) -> None:
    first, _ = made_up(tmp_path, {"gated": 2.1})
    runs = read_runs(tmp_path / REPEATS_FILE)
    for seed in (10, 11):
        rival = run("gat", seed, config={"method": "gat", "weight_decay": 9.0})
        score = replace(rival.scores["best_val_accuracy"], val=0.99)
        runs.append(replace(rival, scores={**rival.scores, "best_val_accuracy": score}))
    write_runs(runs, tmp_path / REPEATS_FILE)
    with pytest.raises(UserError, match="gat on cora, repeat 1: another setting"):
        read_repeats(tmp_path, first.graphs)


def test_planned_searches_without_runs_are_named(tmp_path: Path) -> None:
    first = first_search(tmp_path)
    plan = write_plan(tmp_path, "cora", "paper/cora", ["gat", "gated"])
    assert read_repeats(tmp_path, first.graphs) == {}
    assert "2 further searches of every method on cora are planned" in repeats_answer(
        plan, {}, first
    )
    assert repeats_answer(None, {}, first) == ""
    assert read_variants(tmp_path) is not None
