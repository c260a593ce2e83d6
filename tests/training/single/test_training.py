"""One run: checkpoints, continuing after a kill, predictions, trackers."""

import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from tempergat.base.errors import UserError
from tempergat.training import (
    CHECKPOINT_NAME,
    TensorBoardTracker,
    WandbTracker,
    predict,
    train_group,
)
from tempergat.training.loop import COLUMNS
from tempergat.training.single import checkpoint
from tempergat.training.single.checkpoint import read, write
from tests.support.interrupted_run import PROGRAM, train
from tests.support.processes import ProcessStarter
from tests.support.run_settings import CPU, config, small_graph, train_run

ROOT = Path(__file__).parents[3]
SETTINGS = config(epochs=2)


@pytest.fixture
def saved(tmp_path: Path) -> checkpoint.Checkpoint:
    """The checkpoint of a run with `SETTINGS`, which lies in the test's folder."""
    train_run(SETTINGS, tmp_path)
    return read(tmp_path / CHECKPOINT_NAME)


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / CHECKPOINT_NAME).read_bytes()).hexdigest()


def test_a_killed_run_continues_to_bitwise_the_same_weights(
    tmp_path: Path, starter: ProcessStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    threads = torch.get_num_threads()
    folder, printed = tmp_path / "killed", tmp_path / "epochs.txt"
    try:
        train(tmp_path / "whole")
        for epoch in ("3", "18"):
            status = starter.stop_at(epoch, SIGKILL, [str(folder)], printed, PROGRAM)
            assert status == -SIGKILL
        train(folder)
    finally:
        torch.set_num_threads(threads)
    whole = read(tmp_path / "whole" / CHECKPOINT_NAME)
    killed = read(tmp_path / "killed" / CHECKPOINT_NAME)
    assert set(killed.tensors) == set(whole.tensors)
    for name, value in whole.tensors.items():
        assert torch.equal(killed.tensors[name], value), name
    assert digest(tmp_path / "killed") == digest(tmp_path / "whole")


def test_two_trainings_of_a_run_write_the_same_bytes(tmp_path: Path) -> None:
    for name in ("first", "second"):
        settings = config("temp_gated", epochs=4)
        train_run(settings, tmp_path / name)
    assert digest(tmp_path / "first") == digest(tmp_path / "second")


def test_a_run_alone_has_the_scores_it_has_in_a_group(tmp_path: Path) -> None:
    settings = config("gated", epochs=12)
    alone = train_run(settings, tmp_path, seed=3)
    together = train_group(small_graph(), settings, [2, 3], CPU)[1]
    assert alone.selected_epoch == together.selected_epoch
    assert alone.scores == together.scores
    gates, expected = (torch.tensor(r.selected.gate_means) for r in (alone, together))
    torch.testing.assert_close(gates, expected, rtol=1e-4, atol=1e-5)


def test_time_counts_all_stretches_of_a_run(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop_at_ten(epoch: int) -> None:
        if epoch == 10:
            raise Stop

    settings = config(epochs=12)
    with pytest.raises(Stop):
        train_run(settings, tmp_path, checkpoint_every=5, on_epoch=stop_at_ten)
    path = tmp_path / CHECKPOINT_NAME
    saved = read(path)
    assert saved.metadata["time_s"] > 0.0
    write(path, saved.tensors, {**saved.metadata, "time_s": 1000.0})
    run = train_run(settings, tmp_path)
    assert 1000.0 < run.time_s < 1900.0


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    settings = config(epochs=4)
    first = train_run(settings, tmp_path)
    epochs: list[int] = []
    again = train_run(settings, tmp_path, on_epoch=epochs.append)
    assert epochs == []
    assert again.scores == first.scores
    train_run(settings, tmp_path, resume=False, on_epoch=epochs.append)
    assert epochs == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("method", "seed", "nodes", "named"),
    [
        ("gat", 1, 60, "seed"),
        ("gatv2", 0, 60, "method"),
        ("gat", 0, 80, "graph or split"),
    ],
)
@pytest.mark.usefixtures("saved")
def test_the_checkpoint_of_another_run_is_not_continued(
    tmp_path: Path, method: str, seed: int, nodes: int, named: str
) -> None:
    with pytest.raises(UserError, match=f"another run: its {named} is") as refused:
        train_run(
            config(method, epochs=2), tmp_path, graph=small_graph(nodes), seed=seed
        )
    for option in ("--out", "out=", "--no-resume", "resume=False"):
        assert option in str(refused.value)


@pytest.mark.usefixtures("saved")
def test_the_checkpoint_of_another_graph_names_the_graphs(tmp_path: Path) -> None:
    other = replace(small_graph(80), name="shops")
    with pytest.raises(UserError, match=r"it was trained on .*csbm.*, not on shops; "):
        train_run(config(epochs=3), tmp_path, graph=other)


@pytest.mark.usefixtures("saved")
def test_predictions_refuse_other_features_and_scores_that_are_no_numbers(
    tmp_path: Path,
) -> None:
    with pytest.raises(UserError, match=r"has 5 features per node, but .* on 12"):
        predict(tmp_path, small_graph(d=5))
    beyond = small_graph()
    beyond.data.x.fill_(3e38)
    message = r"no finite scores for 60 of 60 nodes .*; scale"
    with pytest.raises(UserError, match=message):
        predict(tmp_path, beyond)


def test_every_flipped_bit_and_every_cut_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.safetensors"
    write(path, {"a": torch.arange(6.0), "b": torch.ones(2, 2)}, {"seed": 3})
    whole = path.read_bytes()
    assert read(path).metadata == {"seed": 3}
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 4
        path.write_bytes(flipped)
        with pytest.raises(UserError):
            read(path)
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError):
            read(path)
    path.write_bytes(whole + b"more")
    with pytest.raises(UserError):
        read(path)


def other_tensors() -> dict[str, torch.Tensor]:
    return {"best.convs.0.lin.weight": torch.zeros(1, 3, 3)}


@pytest.mark.parametrize(
    ("tensors", "facts", "message"),
    [
        (other_tensors(), {}, r"holds .*\[1, 3, 3\] in place of best\.convs\.0"),
        ({"epoch": torch.zeros(3)}, {}, r"float32 \[3\] in place of epoch"),
        ({"best.convs.0.bias": None}, {}, r"nothing in place of best\.convs\.0"),
        ({"epoch": torch.tensor(-5)}, {}, "its epoch is -5, which is not from 0 to 2"),
        ({"epoch": torch.tensor(3)}, {}, "its epoch is 3, which is not from 0 to 2"),
        ({"failed_epoch": torch.tensor([-1])}, {}, "its failed_epoch is -1"),
        (
            {"history": torch.full((2, 1, 5), 4.0, dtype=torch.float64)},
            {},
            "scores that are not from 0 to 1",
        ),
        ({}, {"in_channels": 10**13}, r"in place of best|its in_channels is"),
        ({}, {"read_options": {"colour": 1}}, "no such option 'colour'"),
        ({}, {"read_options": {"one_hot": 3}}, "read_options: one_hot"),
        ({}, {"feature_names": ["a"]}, "1 names for 12 features"),
        ({}, {"config": {}}, r"config\.epochs"),
        ({}, {"config": [1]}, r"config: .*object"),
        ({}, {"num_classes": 10**18}, "num_classes"),
        ({}, {"in_channels": "12"}, "in_channels"),
    ],
)
def test_a_valid_file_with_other_content_is_a_one_line_error(
    tmp_path: Path,
    saved: checkpoint.Checkpoint,
    tensors: dict[str, Any],
    facts: dict[str, Any],
    message: str,
) -> None:
    changed = {k: v for k, v in {**saved.tensors, **tensors}.items() if v is not None}
    write(tmp_path / CHECKPOINT_NAME, changed, {**saved.metadata, **facts})
    for use, arguments in (
        (predict, (tmp_path, small_graph())),
        (train_run, (SETTINGS, tmp_path)),
    ):
        with pytest.raises(UserError, match=message) as refused:
            use(*arguments)
        assert "\n" not in str(refused.value)
        assert "--no-resume" in str(refused.value)


def test_a_checkpoint_with_one_more_tensor_is_not_continued(
    tmp_path: Path, saved: checkpoint.Checkpoint
) -> None:
    more = {**saved.tensors, "best.more": torch.ones(1)}
    write(tmp_path / CHECKPOINT_NAME, more, saved.metadata)
    with pytest.raises(UserError, match=r"holds best\.more, which this run does not"):
        train_run(SETTINGS, tmp_path)


def test_the_checkpoint_of_another_version_is_named_as_such(
    tmp_path: Path, saved: checkpoint.Checkpoint
) -> None:
    path = tmp_path / CHECKPOINT_NAME
    later = {
        **saved.metadata,
        "config": {**saved.metadata["config"], "tomorrow": None},
        "versions": {"tempergat": "9.1.0"},
    }
    write(path, saved.tensors, later)
    message = r"tomorrow.* made by tempergat 9\.1\.0"
    with pytest.raises(UserError, match=message):
        predict(tmp_path, small_graph())
    with pytest.raises(UserError, match=message):
        train_run(SETTINGS, tmp_path)
    older = {**saved.metadata, "versions": {"tempergat": "0.0.1"}}
    del older["label_name"]
    write(path, saved.tensors, older)
    with pytest.raises(UserError, match=r"label_name.* made by tempergat 0\.0\.1"):
        predict(tmp_path, small_graph())
    content = path.read_bytes()
    path.write_bytes(content.replace(b"checkpoint 1", b"checkpoint 2"))
    with pytest.raises(UserError, match="a later version of tempergat writes"):
        predict(tmp_path, small_graph())


def test_a_run_that_fails_is_stopped_there(tmp_path: Path) -> None:
    epochs: list[int] = []
    settings = config(epochs=200, learning_rate=1e30)
    for _ in range(2):
        result = train_run(settings, tmp_path, on_epoch=epochs.append)
        assert result.status == "failed"
        assert epochs == list(range(1, (result.failed_epoch or 0) + 1))


def test_a_file_in_place_of_the_folder_is_named_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    epochs: list[int] = []
    message = r"cannot write .*run.* a file is where its folder should be"
    with pytest.raises(UserError, match=message):
        train_run(SETTINGS, tmp_path / "run", on_epoch=epochs.append)
    assert epochs == []


class Killed(BaseException):
    pass


def test_a_run_stopped_within_an_epoch_makes_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled = {"training": "sampled", "fanout": (3, 2), "batch_size": 5, "epochs": 3}
    dropped = {"feature_dropout": 0.3, "attention_dropout": 0.2}
    steps = {"optimizer": "adamw", "schedule": "cosine", "clip_norm": 0.5}
    settings = config("gated_temp_v2", norm="batch", **sampled, **dropped, **steps)
    train_run(settings, tmp_path / "whole")
    module = "tempergat.training.single.run_file._MOST_SECONDS_BETWEEN_CHECKPOINTS"
    monkeypatch.setattr(module, 0.0)
    times: list[float] = []

    def write_and_stop(path: Path, tensors: Any, metadata: Any) -> None:
        write(path, tensors, metadata)
        times.append(metadata["time_s"])
        if len(times) == 4:
            raise Killed

    monkeypatch.setattr(checkpoint, "write", write_and_stop)
    with pytest.raises(Killed):
        train_run(settings, tmp_path / "stopped")
    stopped = read(tmp_path / "stopped" / CHECKPOINT_NAME)
    assert int(stopped.tensors["steps_done"]) == 3
    train_run(settings, tmp_path / "stopped")
    assert digest(tmp_path / "stopped") == digest(tmp_path / "whole")
    # That of the finished run does not keep its time.
    assert times[:-1] == sorted(times[:-1])


def test_without_its_package_the_extra_of_a_tracker_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tensorboard", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=r"tensorboard .* 'tempergat\[track\]'"):
        TensorBoardTracker(tmp_path)
    with pytest.raises(UserError, match=r"wandb .* 'tempergat\[track\]'"):
        WandbTracker("project", {})


def test_tensorboard_files_are_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    tracker = TensorBoardTracker(tmp_path)
    tracker.log(1, {"loss": 0.5})
    tracker.finish()
    assert list(tmp_path.glob("events.out.tfevents.*"))


def test_wandb_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    tracker = WandbTracker("project", {"method": "gat"}, tmp_path)
    tracker.log(1, {"loss": 0.5})
    tracker.finish()
    assert list(tmp_path.glob("wandb/offline-run-*"))


def test_trackers_take_every_epoch(tmp_path: Path) -> None:
    tracker = Mock()
    train_run(config(epochs=3), tmp_path, tracker=tracker)
    rows = [(call.args[0], set(call.args[1])) for call in tracker.log.mock_calls]
    assert rows == [(epoch, set(COLUMNS)) for epoch in (1, 2, 3)]
    assert all(0.0 <= call.args[1]["val"] <= 1.0 for call in tracker.log.mock_calls)
    tracker.finish.assert_called_once_with()
