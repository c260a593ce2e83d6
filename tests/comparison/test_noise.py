"""`compare` with noise on the features, or another preparation."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import tempergat
from tempergat.base import UserError
from tempergat.comparison.results.from_store import stored_comparisons
from tempergat.data import csbm, gaussian, missing
from tempergat.training import Condition, Preparation, config_hash, parse_noise
from tests.support.tiny_graph import write_recipe
from tests.support.typed_graph import typed_graph

SEEN: list[Tensor] = []


class Watching(torch.nn.Module):
    """A user's own module that keeps the features it is called with."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        SEEN.append(x)
        return self.linear(x)


def compare(folder: Path, methods: Any = "gat", **options: Any) -> Any:
    recipe = write_recipe(folder / "recipe.yaml")
    shared = {"runs": 2, "recipe": recipe, "device": "cpu", "progress": False}
    graph = csbm(n=60, a=10.0, b=4.0, d=8, mu=2.0)
    return tempergat.compare(graph, methods, **{**shared, **options})


def test_all_methods_see_the_noise_of_a_seed_and_every_seed_has_its_own(
    tmp_path: Path,
) -> None:
    SEEN.clear()
    drawn: dict[tuple[int, int], Tensor] = {}

    def noisy(x: Tensor, seed: int) -> Tensor:
        drawn[seed, len(drawn)] = found = gaussian(x, 0.5, seed)
        return found

    found = compare(
        tmp_path, ["gat", "gcn", Watching], prepare=Preparation(features=noisy)
    )
    assert found.condition.change.startswith("noisy ")
    by_seed = [[x for (s, _), x in drawn.items() if s == seed] for seed in (0, 1)]
    for same in by_seed:
        assert len(same) == 3
        assert all(torch.equal(x, same[0]) for x in same)
    first, second = (same[0] for same in by_seed)
    assert not torch.equal(first, second)
    # Before the runs, the module is tried on the graph itself.
    assert any(torch.equal(x, first) for x in SEEN)
    assert any(torch.equal(x, second) for x in SEEN)


def test_a_comparison_under_noise_says_so_everywhere_and_mixes_with_no_other(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    plain = compare(tmp_path, out=out)
    noisy = compare(tmp_path, out=out, noise="missing:0.25")
    again = compare(tmp_path, out=out, noise="missing:0.25")
    assert [run.scores for run in again.runs] == [run.scores for run in noisy.runs]
    assert [run.time_s for run in again.runs] == [run.time_s for run in noisy.runs]
    assert not {r.config_hash for r in plain.runs} & {r.config_hash for r in noisy.runs}
    words = "0.25 of the feature values lost, 0 in place"
    for text in (repr(noisy), noisy.to_markdown(), noisy.to_latex(), noisy.to_html()):
        assert words in text
    condition = {"noise": "missing", "level": 0.25, "tau": 0.0}
    assert json.loads(noisy.to_json())["condition"] == condition
    assert "condition" not in plain.facts
    assert (out / "csbm.md").exists()
    assert words in (out / "csbm_missing_0.25.md").read_text()
    assert [c.condition for c in stored_comparisons(out)] == [None, noisy.condition]


def test_both_noises_are_gaussian_noise_and_then_lost_values(tmp_path: Path) -> None:
    SEEN.clear()
    both = compare(tmp_path, Watching, noise=["missing:0.3,tau=2", "gaussian:0.5"])
    clean = csbm(n=60, a=10.0, b=4.0, d=8, mu=2.0).data.x
    unit = float(clean.double().square().mean().sqrt())
    for seed in (0, 1):
        expected, _ = missing(gaussian(clean, 0.5 * unit, seed), 0.3, 2 * unit, seed)
        assert any(torch.equal(x, expected) for x in SEEN)
    words = "0.5 times their RMS; then 0.3 of the feature values lost, noise of 2 times"
    assert words in repr(both)
    condition = {"noise": "both", "level": 0.3, "tau": 2.0, "sigma": 0.5}
    assert both.condition.facts == condition
    # Another order is the same noise.
    swapped = parse_noise(["gaussian:0.5", "missing:0.3,tau=2"])
    assert swapped.condition == both.condition


@pytest.mark.parametrize(
    ("condition", "stored"),
    [
        (None, "d40ef99b5910d2be"),
        (Condition("gaussian", 1), "6a972b01b7642e3d"),
        (Condition("missing", 0.3, 1), "a3c46ca78ad9ca0a"),
        (Condition(change="mine"), "7e189ae3f292d11c"),
    ],
)
def test_runs_keep_the_hash_they_were_stored_under(
    condition: Condition | None, stored: str
) -> None:
    assert config_hash({"method": "gat"}, condition) == stored


def test_a_preparation_is_stored_under_a_name_that_follows_its_code() -> None:
    def twice(factor: float) -> Preparation:
        return Preparation(features=lambda x, seed: factor * x)

    assert twice(2.0).condition == twice(2.0).condition != twice(3.0).condition


@pytest.mark.parametrize(
    "noise",
    [
        *("pink:1", "gaussian", "gaussian:0", "missing:1.5"),
        *("missing:0.3,tau=-1", "missing:0.3,tau=", "tau=1"),
    ],
)
def test_noise_of_another_kind_or_level_is_refused(tmp_path: Path, noise: str) -> None:
    with pytest.raises(UserError, match=f"the noise is '{noise}'; give gaussian:LEVEL"):
        compare(tmp_path, noise=noise)


def test_tau_without_lost_values_and_a_kind_given_twice_are_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(UserError, match=r"'gaussian:1,tau=1', and tau is .* missing:"):
        compare(tmp_path, noise="gaussian:1,tau=1")
    with pytest.raises(UserError, match="missing noise is given twice; give each"):
        compare(tmp_path, noise=["missing:0.1", "gaussian:1", "missing:0.3,tau=1"])
    with pytest.raises(UserError, match="no noise is given; give gaussian:LEVEL"):
        compare(tmp_path, noise=[])


def test_what_cannot_be_prepared_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"trained on samples.*leave out one"):
        compare(tmp_path, noise="gaussian:1", settings={"training": "sampled"})
    with pytest.raises(UserError, match=r"typed graph .* noise or prepare in Python"):
        tempergat.compare(typed_graph(), "gat", noise="gaussian:1", progress=False)
    with pytest.raises(UserError, match="Watching is your own module, and only built"):
        compare(
            tmp_path, Watching, prepare=Preparation(model=lambda model, edges: None)
        )
