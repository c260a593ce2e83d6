"""The metrics against scikit-learn, and what a run does with them."""

from typing import get_args

import numpy as np
import pytest
import torch
from torch.func import vmap

from tempergat.base import UserError
from tempergat.training import train_group
from tempergat.training.evaluate import (
    average_precision,
    balanced_weights,
    confusion_counts,
    log_odds,
    macro_f1,
    roc_auc,
)
from tempergat.training.metrics import METRICS, scores_of_parts
from tempergat.training.record import config_hash
from tempergat.training.settings.fields import MetricName
from tests.support.run_settings import (
    CPU,
    config,
    loop_of,
    small_graph,
    trained_loop,
)

sklearn_metrics = pytest.importorskip(
    "sklearn.metrics", reason="scikit-learn, the oracle, is not installed"
)
RUNS, NODES = 3, 150


def drawn(
    classes: int, *, ties: bool, absent: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels, and class scores of several runs; ties come from rounding."""
    generator = torch.Generator().manual_seed(classes)
    labels = torch.randint(0, classes, (NODES,), generator=generator)
    if absent:
        labels[labels == classes - 1] = 0
    logits = torch.randn(RUNS, NODES, classes, generator=generator)
    return labels, logits.round() if ties else logits


@pytest.mark.parametrize(
    ("counts", "label"),
    [([3, 7], 1), ([7, 3], 0), ([5, 0, 4, 1], 0), ([5, 0, 4, 1], 1)],
)
@pytest.mark.parametrize("metric", get_args(MetricName))
def test_a_constant_answer_scores_what_a_run_that_gives_it_would(
    metric: str, counts: list[int], label: int
) -> None:
    nodes = torch.arange(sum(counts))
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    logits = torch.zeros(len(nodes), len(counts))
    logits[:, label] = 1.0
    score = scores_of_parts(METRICS[metric], logits, {"test": nodes}, {"test": labels})
    assert METRICS[metric].constant(counts, label) == pytest.approx(float(score))


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 6])
def test_metrics_of_all_runs_at_once_equal_those_of_scikit_learn(
    classes: int, ties: bool, absent: bool
) -> None:
    labels, logits = drawn(classes, ties=ties, absent=absent and classes > 2)
    probabilities = logits.softmax(-1)
    ours = {
        "f1": vmap(lambda x: macro_f1(x.argmax(-1), labels, classes))(logits),
        "auc": vmap(lambda p: roc_auc(p, labels))(probabilities),
        "ap": vmap(lambda p: average_precision(p, labels))(probabilities),
    }
    y = labels.numpy()
    present = [c for c in range(classes) if (y == c).any()]
    if classes == 2:
        present = [1]
    for run in range(RUNS):
        p = probabilities[run].double().numpy()
        expected = {
            "f1": sklearn_metrics.f1_score(
                y, logits[run].argmax(-1).numpy(), average="macro"
            ),
            "auc": np.mean(
                [sklearn_metrics.roc_auc_score(y == c, p[:, c]) for c in present]
            ),
            "ap": np.mean(
                [
                    sklearn_metrics.average_precision_score(y == c, p[:, c])
                    for c in present
                ]
            ),
        }
        for name, value in expected.items():
            assert float(ours[name][run]) == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_rankings_tell_nodes_apart_that_a_model_is_sure_of(classes: int) -> None:
    labels = torch.arange(60) % 2
    # Every probability of class 1 is 1 in float32, and many are in float64.
    logits = torch.zeros(60, classes)
    logits[:, 1] = 30 + torch.arange(60) + 60 * labels
    odds = log_odds(logits)
    assert float(odds[labels == 1, 1].min()) > float(odds[labels == 0, 1].max())
    if classes == 2:
        rows = {"test": torch.arange(60)}
        for metric in ("roc_auc", "average_precision"):
            shown = scores_of_parts(METRICS[metric], logits, rows, {"test": labels})
            assert float(shown) == 1.0


def test_log_odds_rank_nodes_as_probabilities_do_and_keep_ties() -> None:
    torch.manual_seed(0)
    logits = torch.randint(-8, 8, (400, 4)).double() / 4
    p = logits.softmax(-1)
    assert torch.allclose(log_odds(logits), (p / (1 - p)).log(), atol=1e-12)
    shifted = logits + torch.randint(-40, 40, (400, 1))
    assert log_odds(logits).tolist() == log_odds(shifted).tolist()


def test_roc_auc_of_many_classes_is_scikit_learns_one_against_the_rest() -> None:
    labels, logits = drawn(4, ties=True, absent=False)
    p = logits[0].double().softmax(-1)
    expected = sklearn_metrics.roc_auc_score(
        labels.numpy(), p.numpy(), multi_class="ovr", average="macro"
    )
    assert float(roc_auc(p, labels)) == pytest.approx(expected, abs=1e-12)


def test_confusion_counts_and_balanced_weights_are_those_of_scikit_learn() -> None:
    from sklearn.utils.class_weight import compute_class_weight

    labels, logits = drawn(4, ties=False, absent=False)
    predicted = logits[0].argmax(-1)
    expected = sklearn_metrics.confusion_matrix(labels.numpy(), predicted.numpy())
    assert confusion_counts(predicted, labels, 4).tolist() == expected.tolist()
    y = labels.numpy()
    weights = compute_class_weight("balanced", classes=np.unique(y), y=y)
    assert balanced_weights(labels, 5).tolist() == pytest.approx([*weights, 1.0])


@pytest.mark.parametrize("metric", ["macro_f1", "roc_auc", "average_precision"])
def test_a_run_reports_and_selects_by_the_metric(metric: str) -> None:
    graph = small_graph()
    loop = loop_of(config(metric=metric, epochs=12), [0, 1])
    task, by_hand = loop.task, []
    for epoch in range(1, 13):
        loop.run(until=epoch)
        logits = loop.batches.logits(loop.runs)[1].detach()
        scores = scores_of_parts(METRICS[metric], logits, *task.examples.in_rows())
        by_hand.append(scores.tolist())
    history = loop.history[:, 1, 2:]
    assert history.flatten().tolist() == pytest.approx(np.ravel(by_hand), abs=1e-6)
    run = train_group(graph, config(metric=metric, epochs=12), [0, 1], CPU)[1]
    assert run.selected_epoch == int(np.argmax([val for _, val, _ in by_hand])) + 1
    assert run.config["metric"] == metric


def test_a_run_records_its_confusion_matrix_and_further_metrics() -> None:
    graph = small_graph()
    for run in train_group(graph, config(epochs=5), [0, 1], CPU):
        assert run.confusion is not None
        assert run.metrics is not None
        counts = np.array(run.confusion)
        assert run.selected_scores is not None
        assert counts.sum() == int(graph.data.test_mask.sum())
        assert counts.trace() / counts.sum() == run.selected_scores.test
        assert run.metrics["accuracy"]["best_val_accuracy"] == run.selected_scores
        assert set(run.metrics) == {
            "accuracy",
            "macro_f1",
            "roc_auc",
            "average_precision",
        }


def test_ranking_metrics_need_two_classes_in_every_part() -> None:
    graph = small_graph(classes=2)
    graph.data.test_mask &= graph.data.y == 0
    with pytest.raises(UserError, match=r"all .* test nodes .* are of class 0"):
        train_group(graph, config(metric="roc_auc", epochs=1), [0], CPU)
    run = train_group(graph, config(epochs=1), [0], CPU)[0]
    assert run.metrics is not None
    assert set(run.metrics) == {"accuracy", "macro_f1"}


def test_the_metric_and_class_weights_enter_the_hash_only_where_given() -> None:
    plain = config().model_dump(mode="json")
    assert not {"metric", "class_weights"} & plain.keys()
    changed = config(metric="roc_auc", class_weights="balanced")
    values = changed.model_dump(mode="json")
    assert values == {**plain, "metric": "roc_auc", "class_weights": "balanced"}
    assert config_hash(values) != config_hash(plain)


def test_balanced_weights_change_the_loss_of_all_seeds_as_of_one() -> None:
    graph = small_graph()
    graph.data.y[graph.data.y == 2] = 0
    weighted = config(class_weights="balanced", epochs=3)
    loop = loop_of(weighted, [0, 1], graph)
    losses = loop.runs.backward(loop.batches.batch, torch.tensor(0))
    assert loop.task.class_weights is not None
    rows, targets = loop.task.examples.in_rows()
    nodes, labels = rows["train"], targets["train"]
    logits = loop.batches.logits(loop.runs).detach()
    for run in range(2):
        each = torch.nn.functional.cross_entropy(
            logits[run, nodes], labels, reduction="none"
        )
        by_class = [float(each[labels == c].mean()) for c in (0, 1)]
        assert float(losses[run]) == pytest.approx(np.mean(by_class), abs=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("metric", ["macro_f1", "roc_auc", "average_precision"])
def test_steps_with_a_metric_are_recorded_on_a_gpu_as_on_the_cpu(metric: str) -> None:
    settings = config(metric=metric, class_weights="balanced", epochs=30)
    histories = []
    for device in (CPU, torch.device("cuda")):
        loop = trained_loop(settings, [0, 1], device=device)
        assert loop.runs.can_be_captured
        histories.append(loop.history.cpu())
    torch.testing.assert_close(histories[1], histories[0], rtol=2e-2, atol=2e-2)


def test_a_ranking_with_nan_has_no_score() -> None:
    labels = torch.tensor([0, 1, 1, 0, 2])
    for classes in (2, 3):
        ranking = torch.rand(2, 5, classes)
        ranking[1, 3] = torch.nan
        of_classes = labels.clamp(max=classes - 1)
        for metric in (roc_auc, average_precision):
            first, second = vmap(metric, in_dims=(0, None))(ranking, of_classes)
            assert first.isfinite()
            assert second.isnan()
