"""AdamW, the cosine schedule and the limit of the gradient, compared with torch's."""

import math

import pytest
import torch
import torch.nn.functional as F

from tempergat.nn import build_model
from tempergat.training import config_hash, make_overrides, train_group
from tests.support.run_settings import (
    CPU,
    config,
    loop_of,
    small_graph,
    trained_loop,
)

EPOCHS = 12
SETTINGS = {"optimizer": "adamw", "schedule": "cosine", "clip_norm": 0.55}


def trained_plainly(settings, seed):
    """One run with torch's own optimizer, scheduler and clipping."""
    data = small_graph().data
    torch.manual_seed(seed)
    model = build_model(
        in_channels=data.x.size(1), out_channels=3, **settings.model_arguments()
    )
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    norms = []
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        logits = model(data.x, data.edge_index)
        F.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        norms.append(float(norm))
        optimizer.step()
        schedule.step()
    return model.state_dict(), norms


def own_module(inputs, classes):
    return build_model("temp_only", inputs, 8, classes, heads=2)


@pytest.mark.parametrize("own", [False, True])
def test_runs_of_many_seeds_follow_torchs_adamw_schedule_and_clipping(own: bool):
    settings = config("temp_only", epochs=EPOCHS, weight_decay=0.1, **SETTINGS)
    used = settings
    if own:
        used = settings.with_changes(method="mine", source_hash="0" * 16)
    loop = trained_loop(used, [3, 4], build=own_module if own else None)
    for slot, seed in enumerate((3, 4)):
        expected, norms = trained_plainly(settings, seed)
        # The limit acts in some steps and not in others.
        assert min(norms) < settings.clip_norm < max(norms)
        for name, value in expected.items():
            trained = loop.runs.state[name][slot]
            torch.testing.assert_close(trained, value, rtol=1e-4, atol=1e-5, msg=name)


def test_a_diverging_run_does_not_change_the_gradients_of_another():
    settings = config(epochs=5, **SETTINGS)
    alone, both = loop_of(settings, [1]), loop_of(settings, [0, 1])
    with torch.no_grad():
        for value in both.runs.parameters.values():
            value[0] *= math.inf
    alone.run()
    both.run()
    assert both.failed_epoch.tolist() == [1, 0]
    torch.testing.assert_close(both.history[:, 1], alone.history[:, 0])


def test_the_defaults_are_those_of_version_0_1_0_and_are_not_written():
    plain = config()
    named = config(optimizer="adam", schedule=None, clip_norm=None)
    assert plain.model_dump() == named.model_dump()
    assert not set(SETTINGS) & set(plain.model_dump())
    changed = config(**SETTINGS)
    assert set(SETTINGS) <= set(changed.model_dump())
    hashes = {config_hash(c.model_dump(mode="json")) for c in (plain, named, changed)}
    assert len(hashes) == 2


def test_they_can_be_given_in_place_of_a_recipes():
    overrides = make_overrides(SETTINGS)
    assert overrides.applied_to(config(), "demo") == config(**SETTINGS)
    assert overrides.words == " with optimizer=adamw, schedule=cosine, clip_norm=0.55"


def test_a_group_with_all_three_settings_is_recorded():
    runs = train_group(small_graph(), config(epochs=3, **SETTINGS), [0, 1], CPU)
    assert [run.status for run in runs] == ["done", "done"]
    assert runs[0].config["optimizer"] == "adamw"
