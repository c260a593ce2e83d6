"""CUDA graphs are captured on the device that the work is for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from tempergat.training.capture import replayed


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
