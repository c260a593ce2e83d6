"""Models of runs: their first weights, features of their own."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from studies.theory.learned import VARIANTS, sample_graph, train
from studies.theory.model import MissingNoise, standard_setting
from tempergat.base import UserError
from tempergat.training import Condition, Preparation, noise_on_features, train_group
from tempergat.training.results import finished_runs
from tempergat.training.runs.models import seeded_weights, single_model
from tests.support.run_settings import CPU, config, small_graph, trained_loop


@pytest.fixture
def cuda_seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds that CUDA's generators were given."""
    given: list[int] = []
    for name in ("manual_seed", "manual_seed_all"):
        monkeypatch.setattr(torch.cuda, name, given.append)
    return given


def test_training_leaves_all_generators_alone(cuda_seeds: list[int]) -> None:
    before = torch.get_rng_state()
    train_group(small_graph(), config(epochs=2, feature_dropout=0.5), [0, 1], CPU)
    assert cuda_seeds == []
    assert torch.equal(before, torch.get_rng_state())


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
        weights = single_model(config("temp_gated_v2"), 12, 3, seed=5).state_dict()
    for name, value in expected.items():
        assert torch.equal(weights[name], value), name


def drawn(x: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return x.copy_(torch.randn(x.shape, generator=generator))


PREPARED = Preparation(features=drawn)


@pytest.mark.parametrize("method", ["gcn", "gat", "gated_temp_v2", "transformer"])
def test_every_run_is_the_one_on_a_graph_with_its_features(method: str) -> None:
    graph = small_graph()
    settings = config(
        method, epochs=8, feature_dropout=0.3, attention_dropout=0.3, weight_decay=0.0
    )
    loop = trained_loop(settings, [4, 7], preparation=PREPARED)
    for run, result in enumerate(finished_runs(loop, graph, start=0.0)):
        data = graph.data.clone()
        data.x = drawn(data.x.clone(), result.seed)
        single = trained_loop(settings, [result.seed], replace(graph, data=data))
        torch.testing.assert_close(
            loop.history[:, run, :2], single.history[:, 0, :2], rtol=1e-4, atol=1e-5
        )
        (expected,) = finished_runs(single, graph, start=0.0)
        for name in ("temperatures", "gate_means"):
            values = getattr(result.last, name)
            wanted = getattr(expected.last, name)
            assert values == pytest.approx(wanted, rel=1e-4)


def test_features_as_they_are_change_no_score() -> None:
    graph, settings = small_graph(), config("temp_gated", epochs=6)
    plain = train_group(graph, settings, [0, 1], CPU)
    same = Preparation(features=lambda x, seed: x)
    prepared = train_group(graph, settings, [0, 1], CPU, preparation=same)
    assert [run.scores for run in prepared] == [run.scores for run in plain]


def test_levels_of_noise_share_the_draws_of_a_seed() -> None:
    x = torch.randn(30, 5)
    weak, strong = (
        noise_on_features(Condition("gaussian", level)).features_of(x, [3, 4]) - x
        for level in (1.0, 2.0)
    )
    assert not torch.isclose(weak[0], weak[1]).any()
    torch.testing.assert_close(strong, 2 * weak)


def test_features_of_another_shape_are_refused() -> None:
    half = Preparation(features=lambda x, seed: x[:, ::2])
    with pytest.raises(UserError, match=r"\[60, 6\]; return those .* \[60, 12\]"):
        train_group(small_graph(), config("gat"), [0], CPU, preparation=half)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "method", ["gcn", "temp_gated", "gated_temp_v2", "transformer"]
)
def test_runs_train_alike_on_a_gpu_where_steps_are_recorded(method: str) -> None:
    settings = config(method, epochs=30, feature_dropout=0.3, attention_dropout=0.3)
    histories = []
    for device in (CPU, torch.device("cuda")):
        loop = trained_loop(settings, [4, 7], device=device, preparation=PREPARED)
        histories.append(loop.history[:, :, 0].cpu())
    torch.testing.assert_close(histories[1], histories[0], rtol=1e-2, atol=1e-3)
