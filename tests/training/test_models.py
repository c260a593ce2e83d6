"""Drawing initial weights leaves torch's generators as they were."""

import pytest
import torch

from studies.theory.learned import VARIANTS, sample_graph, train
from studies.theory.model import MissingNoise, standard_setting
from tempergat.training import train_group
from tempergat.training.runs.models import seeded_weights, single_model
from tests.support.run_settings import config, small_graph

CPU = torch.device("cpu")


@pytest.fixture
def cuda_seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds that CUDA's generators were given."""
    given: list[int] = []
    for name in ("manual_seed", "manual_seed_all"):
        monkeypatch.setattr(torch.cuda, name, given.append)
    return given


def test_training_does_not_seed_cuda_generators(cuda_seeds: list[int]) -> None:
    train_group(small_graph(), config(epochs=2, feature_dropout=0.5), [0, 1], CPU)
    assert cuda_seeds == []


def test_the_theory_study_leaves_all_generators_alone(cuda_seeds: list[int]) -> None:
    setting = standard_setting(coordinates=4, neighbours=6)
    data = sample_graph(setting, MissingNoise(0.5, 2.0), 40, 0)
    before = torch.get_rng_state()
    train(setting, data, VARIANTS["fixed"], 3, steps=2)
    assert cuda_seeds == []
    assert torch.equal(torch.get_rng_state(), before)


def draw_and_fail() -> None:
    with seeded_weights(1):
        torch.rand(3)
        raise RuntimeError("stop")


def test_the_generator_is_set_back_after_an_error() -> None:
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="stop"):
        draw_and_fail()
    assert torch.equal(torch.get_rng_state(), before)


def test_weights_do_not_depend_on_the_default_device() -> None:
    expected = single_model(config("temp_gated_v2"), 12, 3, seed=5).state_dict()
    with torch.device("meta"):
        found = single_model(config("temp_gated_v2"), 12, 3, seed=5).state_dict()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name
