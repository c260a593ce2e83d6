"""Gated skips are a setting of runs."""

import pytest

from tempergat.base import UserError
from tempergat.comparison.results.notes import note_on_residual
from tempergat.training import config_hash
from tests.support.run_settings import config


def test_a_gated_skip_is_another_setting_than_a_residual() -> None:
    hashes = {config_hash(config(residual=kind)) for kind in (False, True, "gate")}
    assert len(hashes) == 3
    with pytest.raises(UserError, match="residual"):
        config().with_changes(residual="skip")


def test_the_note_on_residuals_says_what_is_added() -> None:
    (note,) = note_on_residual({"gat": {"residual": "gate"}})
    assert "adds a learned share of a linear map of its input" in note


def test_the_note_names_transformers_which_always_have_a_residual() -> None:
    (note,) = note_on_residual({"gat": {"residual": False}, "transformer": {}})
    assert note.startswith("transformer has a residual: each layer adds a linear map")
