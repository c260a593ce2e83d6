"""Gated skips are a setting of runs."""

import pytest

from tempergat.base import UserError
from tempergat.comparison import note_on_residual
from tempergat.training import config_hash, train_group
from tests.support.run_settings import CPU, config, small_graph, train_run


def test_a_gated_skip_is_another_setting_than_a_residual() -> None:
    hashes = {config_hash(config(residual=kind)) for kind in (False, True, "gate")}
    assert len(hashes) == 3
    with pytest.raises(UserError, match="residual"):
        config().with_changes(residual="skip")


@pytest.mark.parametrize("method", ["temp_gated", "gatv2", "gcn"])
def test_all_seeds_at_once_follow_one_seed_alone(method: str) -> None:
    settings = config(method, epochs=6, residual="gate", feature_dropout=0.3)
    graph = small_graph()
    together = train_group(graph, settings, [0, 1], CPU)
    alone = train_run(settings, None, graph=graph, seed=1)
    for rule, scores in alone.scores.items():
        assert together[1].scores[rule].epoch == scores.epoch
        assert together[1].scores[rule].test == pytest.approx(scores.test)


def test_the_note_on_residuals_says_what_is_added() -> None:
    (note,) = note_on_residual({"gat": {"residual": "gate"}})
    assert "adds a learned share of a linear map of its input" in note


def test_the_note_names_transformers_which_always_have_a_residual() -> None:
    (note,) = note_on_residual({"gat": {"residual": False}, "transformer": {}})
    assert note.startswith("transformer has a residual: each layer adds a linear map")
    (note,) = note_on_residual({"transformer": {}}, "default")
    assert "--recipe plain" not in note
