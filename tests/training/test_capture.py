"""Work as a CUDA graph is the work, on its device; so are steps on samples."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from tempergat.training.devices import capture
from tempergat.training.devices.capture import replayed
from tests.support.interpreted import run_interpreted
from tests.support.run_settings import config, loop_of
from tests.support.versions import needs_torch

# The kernels that sample run in Triton's interpreter, the layers on the CPU.
PROGRAM = """
import sys
import torch
from tempergat.ops.gpu import sampling as kernels
from tempergat.training.devices.padded_step import PaddedStep
from tests.support.run_settings import config, loop_of

method, norm, (layers, epochs) = sys.argv[1], sys.argv[2], map(int, sys.argv[3:])
settings = config(
    method, num_layers=layers, training="sampled", fanout=(3, 2), batch_size=16,
    epochs=2, feature_dropout=0.3, attention_dropout=0.2, gate_penalty=0.5,
    clip_norm=1.0, schedule="cosine", norm=norm or None,
)

plain, other = loop_of(settings), loop_of(settings)
for runs in (plain.runs, other.runs):
    # Batch norm takes this bias out again: its gradient is rounding, as large as Adam
    # makes it.
    for conv in list(runs.model.convs)[:-1]:
        conv.bias.register_hook(torch.zeros_like)
step = PaddedStep(other, kernels, (16, 90, 150), (70, 300))
step._has_loops = True
for epoch in range(epochs):
    step.begin_epoch()
    for batch in plain.batches.epoch(plain.epochs_done, plain.steps_done):
        plain.train_on(batch)
        step.run()
        assert step.misfit == 0
        for (name, a), b in zip(plain.runs.parameters.items(),
                                other.runs.parameters.values()):
            torch.testing.assert_close(b.grad, a.grad, msg=lambda m: name + m)
            torch.testing.assert_close(b, a, msg=lambda m: name + m)
        for (name, a), b in zip(plain.runs.state.items(), other.runs.state.values()):
            torch.testing.assert_close(b, a, msg=lambda m: name + m)
    torch.testing.assert_close(other.epoch_loss(), plain.epoch_loss())
    plain.epochs_done, plain.steps_done = epoch + 1, 0
    other.epochs_done = epoch + 1
assert int(step.step) == len(plain.batches)

# A batch that does not fit changes nothing, and neither do those after it.
plain = loop_of(settings)
before = {k: v.clone() for k, v in plain.state().items()}
step = PaddedStep(plain, kernels, (16, 17, 30), (70, 300))
step.begin_epoch()
for _ in range(2):
    step.run()
assert step.misfit == 1 and step.step == 0
after = plain.state()
assert all(torch.equal(after[k].nan_to_num(), before[k].nan_to_num()) for k in before)
assert all(float(s["step"]) == 0 for s in plain.optimizer.state.values())
"""


class FakeCuda:
    """Replaces `torch.cuda`; records the current device and the device of each call."""

    def __init__(self) -> None:
        self.current = torch.device("cuda:0")
        self.worked_on: list[torch.device] = []
        self.captured_on: list[torch.device] = []
        self.replays = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Stream:
            def __init__(self, device: torch.device) -> None:
                self.device = device

            def wait_stream(self, other: Any) -> None: ...

            def synchronize(self) -> None: ...

        def replay() -> None:
            self.replays += 1

        def begin() -> None:
            self.captured_on.append(self.current)

        class Graph:
            def replay(self) -> None:
                replay()

            def capture_begin(self, capture_error_mode: str) -> None:
                assert capture_error_mode == "thread_local"
                begin()

            def capture_end(self) -> None: ...

        @contextmanager
        def device(wanted: torch.device) -> Iterator[None]:
            before, self.current = self.current, torch.device(wanted)
            yield
            self.current = before

        def current_stream(device: torch.device) -> Stream:
            return Stream(device)

        def stream(stream: Stream) -> Any:
            return device(stream.device)

        for name, value in {
            "Stream": Stream,
            "CUDAGraph": Graph,
            "device": device,
            "mem_get_info": lambda device: (1, 1),
            "stream": stream,
            "current_stream": current_stream,
        }.items():
            monkeypatch.setattr(torch.cuda, name, value)

    def work(self) -> None:
        self.worked_on.append(self.current)


@pytest.mark.parametrize("times", [5, 30])
def test_work_and_capture_enter_the_device_of_the_task(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    cuda, second = FakeCuda(), torch.device("cuda:1")
    cuda.install(monkeypatch)
    call = replayed(cuda.work, second, times)
    for _ in range(times):
        call()
    assert set(cuda.worked_on) == {second}
    assert cuda.current == torch.device("cuda:0")
    if times == 30:
        assert cuda.captured_on == [second]
        assert len(cuda.worked_on) + cuda.replays == times + 1
    else:
        assert len(cuda.worked_on) == times


def test_on_a_cpu_the_function_itself_is_called() -> None:
    cuda = FakeCuda()
    assert replayed(cuda.work, torch.device("cpu"), 100) == cuda.work


@pytest.mark.gpu
def test_replayed_work_is_the_work_on_every_cuda_device() -> None:
    for number in range(torch.cuda.device_count()):
        device = torch.device("cuda", number)
        total = torch.zeros((), device=device)

        def add(total: torch.Tensor = total) -> None:
            total.add_(1.0)

        call = replayed(add, device, 40)
        for _ in range(40):
            call()
        assert total.item() == 40.0


@needs_torch(2, 8, "interpreted by Triton 3.2 the kernels draw other edges")
def test_padded_steps_train_as_plain_steps_do() -> None:
    run_interpreted(PROGRAM, "temp_gated", "batch", "2", "1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "norm", "layers"),
    [("gated_temp_v2", "", 3), ("gatv2", "batch", 3), ("gated_first", "", 2)],
)
def test_padded_steps_of_other_methods_train_as_plain_steps(
    method: str, norm: str, layers: int
) -> None:
    run_interpreted(PROGRAM, method, norm, str(layers), "2")


def _training(**settings):
    settings = config(
        "temp_gated", training="sampled", fanout=(3, 2), batch_size=4, epochs=20,
        feature_dropout=0.3, attention_dropout=0.2, **settings,
    )  # fmt: skip
    loop = loop_of(settings, device=torch.device("cuda"))
    if settings.norm is not None:
        loop.runs.model.convs[0].bias.register_hook(torch.zeros_like)
    return loop


@pytest.mark.gpu
@pytest.mark.parametrize("norm", [None, "batch"])
@pytest.mark.parametrize("tight", [False, True])
def test_a_cuda_graph_trains_as_plain_steps_do(
    tight: bool, norm: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the room is tight, some batches do not fit; none may be lost."""
    if tight:
        monkeypatch.setattr(capture, "_with_margin", lambda count: count)
    recorded, plain = _training(norm=norm), _training(norm=norm)
    assert recorded.captured is not None
    plain.captured = None
    recorded.run(until=4)
    plain.run(until=4)
    assert recorded.captured._graph is not None
    assert (recorded.captured.misfits > 0) == tight
    torch.testing.assert_close(recorded.history, plain.history, equal_nan=True)
    for name, value in plain.runs.state.items():
        torch.testing.assert_close(
            recorded.runs.state[name], value, rtol=1e-3, atol=1e-4
        )
