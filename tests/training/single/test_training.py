"""One run: checkpoints, continuing after a kill, predictions."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tempergat.base.errors import UserError
from tempergat.training import CHECKPOINT_NAME, predict, train_group
from tempergat.training.single.checkpoint import read, write
from tests.support.interrupted_run import train
from tests.support.run_settings import config, small_graph, train_run

CPU = torch.device("cpu")
ROOT = Path(__file__).parents[3]


def kill_at(folder: Path, epochs: int, epoch: int) -> None:
    """Runs the run in another process and kills it as soon as the epoch is done."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.interrupted_run", folder, str(epochs)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= epoch:
            process.kill()
            break
    process.stdout.close()
    assert process.wait() == -9


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / CHECKPOINT_NAME).read_bytes()).hexdigest()


def test_a_killed_run_continues_to_bitwise_the_same_weights(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    try:
        train(tmp_path / "whole", 40, report=False)
        for epoch in (3, 18):
            kill_at(tmp_path / "killed", 40, epoch)
        train(tmp_path / "killed", 40, report=False)
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
    found = torch.tensor(alone.selected.gate_means)
    expected = torch.tensor(together.selected.gate_means)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


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
def test_the_checkpoint_of_another_run_is_not_continued(
    tmp_path: Path, method: str, seed: int, nodes: int, named: str
) -> None:
    train_run(config(epochs=2), tmp_path)
    with pytest.raises(UserError, match=f"another run: its {named} is") as found:
        train_run(
            config(method, epochs=2), tmp_path, graph=small_graph(nodes), seed=seed
        )
    for option in ("--out", "out=", "--no-resume", "resume=False"):
        assert option in str(found.value)


def test_the_checkpoint_of_another_graph_names_the_graphs(tmp_path: Path) -> None:
    train_run(config(epochs=2), tmp_path)
    other = replace(small_graph(80), name="shops")
    with pytest.raises(UserError, match=r"it was trained on .*csbm.*, not on shops; "):
        train_run(config(epochs=3), tmp_path, graph=other)


@pytest.mark.parametrize("method", ["gcn", "temp_gated_v2"])
def test_predictions_are_those_of_the_selected_epoch(
    tmp_path: Path, method: str
) -> None:
    graph = small_graph()
    result = train_run(config(method, epochs=25), tmp_path, graph=graph)
    classes = predict(tmp_path, graph)
    assert classes.shape == (60,)
    for split in ("train", "val", "test"):
        mask = graph.data[f"{split}_mask"]
        accuracy = (classes == graph.data.y)[mask].double().mean().item()
        assert accuracy == pytest.approx(
            getattr(result.scores["best_val_accuracy"], split)
        )


def test_predictions_refuse_a_graph_with_other_features(tmp_path: Path) -> None:
    train_run(config(epochs=2), tmp_path)
    with pytest.raises(UserError, match=r"has 5 features per node, but .* on 12"):
        predict(tmp_path, small_graph(d=5))


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
        ({}, {"config": [1]}, r"config: .*dictionary"),
        ({}, {"num_classes": 10**18}, "num_classes"),
        ({}, {"in_channels": "12"}, "in_channels"),
    ],
)
def test_a_valid_file_with_other_content_is_a_one_line_error(
    tmp_path: Path, tensors: dict[str, Any], facts: dict[str, Any], message: str
) -> None:
    settings = config(epochs=2)
    train_run(settings, tmp_path)
    path = tmp_path / CHECKPOINT_NAME
    saved = read(path)
    changed = {k: v for k, v in {**saved.tensors, **tensors}.items() if v is not None}
    write(path, changed, {**saved.metadata, **facts})
    for use in (
        lambda: predict(tmp_path, small_graph()),
        lambda: train_run(settings, tmp_path),
    ):
        with pytest.raises(UserError, match=message) as found:
            use()
        assert "\n" not in str(found.value)
        assert "--no-resume" in str(found.value)


def test_a_checkpoint_with_one_more_tensor_is_not_continued(tmp_path: Path) -> None:
    settings = config(epochs=2)
    train_run(settings, tmp_path)
    path = tmp_path / CHECKPOINT_NAME
    saved = read(path)
    more = {**saved.tensors, "best.more": torch.ones(1)}
    write(path, more, saved.metadata)
    with pytest.raises(UserError, match=r"holds best\.more, which this run does not"):
        train_run(settings, tmp_path)


def test_the_checkpoint_of_another_version_is_named_as_such(tmp_path: Path) -> None:
    settings = config(epochs=2)
    train_run(settings, tmp_path)
    path = tmp_path / CHECKPOINT_NAME
    saved = read(path)
    facts = {
        **saved.metadata,
        "config": {**saved.metadata["config"], "tomorrow": None},
        "versions": {"tempergat": "9.1.0"},
    }
    write(path, saved.tensors, facts)
    for use in (
        lambda: predict(tmp_path, small_graph()),
        lambda: train_run(settings, tmp_path),
    ):
        with pytest.raises(UserError, match=r"tomorrow.* made by tempergat 9\.1\.0"):
            use()
    older = {**saved.metadata, "versions": {"tempergat": "0.0.1"}}
    del older["label_name"]
    write(path, saved.tensors, older)
    with pytest.raises(UserError, match=r"label_name.* made by tempergat 0\.0\.1"):
        predict(tmp_path, small_graph())
    content = path.read_bytes()
    path.write_bytes(content.replace(b"checkpoint 1", b"checkpoint 2"))
    with pytest.raises(UserError, match="a later version of tempergat writes"):
        predict(tmp_path, small_graph())


def test_predictions_that_are_no_numbers_are_not_given_as_classes(
    tmp_path: Path,
) -> None:
    graph = small_graph()
    train_run(config(epochs=2), tmp_path, graph=graph)
    beyond = small_graph()
    beyond.data.x = torch.full_like(graph.data.x, 3e38)
    with pytest.raises(
        UserError, match=r"no finite scores for 60 of 60 nodes .*; scale"
    ):
        predict(tmp_path, beyond)


def test_a_run_that_fails_is_stopped_there(tmp_path: Path) -> None:
    epochs: list[int] = []
    settings = config(epochs=200, learning_rate=1e30)
    for _ in range(2):
        result = train_run(settings, tmp_path, on_epoch=epochs.append)
        assert result.status == "failed"
        assert epochs == list(range(1, (result.failed_epoch or 0) + 1))


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read checkpoint .*nowhere"):
        predict(tmp_path / "nowhere", small_graph())


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    epochs: list[int] = []
    with pytest.raises(UserError, match=r"cannot write .*file"):
        train_run(config(epochs=1), in_the_way, on_epoch=epochs.append)
    assert epochs == []


def test_a_file_in_place_of_the_output_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(UserError, match="a file is where its folder should be"):
        train_run(config(epochs=2), tmp_path / "run")
