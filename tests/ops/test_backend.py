"""Which backend runs a call: one decision, the same for every op."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from tempergat import ops
from tempergat.ops import Graph, backend, gpu
from tempergat.ops.backend import find, refusal
from tempergat.ops.calls import Call
from tempergat.ops.cpu import library as cpu

ALL = ("cpu", "gpu")
GRAPH = Graph(torch.tensor([[0, 1], [1, 0]]), 2)


@pytest.fixture(name="cuda")
def pretend_a_modern_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """CUDA tensors without data, on a device that is not there."""
    monkeypatch.setattr(gpu, "TRITON", "3.6.0")
    monkeypatch.setattr(gpu, "_TRITON_VERSION", (3, 6))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Tesla T4")
    gpu._device_refusals.clear()
    with FakeTensorMode():
        yield
    gpu._device_refusals.clear()


def _calls() -> list[Call]:
    """One call of each op, in float32 on the GPU."""

    def x(*shape: int) -> Tensor:
        return torch.empty(shape, device="cuda")

    graph = Graph(torch.zeros(2, 3, dtype=torch.long, device="cuda"), 2, check=False)
    seeds = torch.zeros(1, dtype=torch.long, device="cuda")
    return [
        Call("gat", ALL, (x(2, 4, 8), x(2, 4), x(2, 4), None), graph),
        Call("gatv2", ALL, (x(2, 4, 8), x(2, 4, 8), x(4, 8), None), graph),
        Call("gate", ("gpu",), (x(2, 32), x(2, 32))),
        Call("dropout", ALL, (x(2, 1, 32), seeds)),
        Call("aggregate", ALL, (x(2, 1, 32), x(5, 1))),
    ]


@pytest.mark.usefixtures("cuda")
def test_a_modern_gpu_serves_every_op() -> None:
    assert [find(call) for call in _calls()] == [gpu] * 5


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    ("module", "changes", "reason"),
    [
        (
            torch.cuda,
            {"get_device_capability": lambda _: (7, 5)},
            "Tesla T4 is older than compute capability 8.0",
        ),
        (
            gpu,
            {"TRITON": "3.2.0", "_TRITON_VERSION": (3, 2)},
            "triton 3.2.0 is older than 3.3",
        ),
        (gpu, {"TRITON": None}, "triton is not installed"),
        (
            torch.version,
            {"hip": "6.4"},
            "the Triton kernels compile for ROCm, but have never run there",
        ),
    ],
    ids=["an old GPU", "an old Triton", "no Triton", "ROCm"],
)
def test_what_kernels_do_not_run_on_is_refused_by_every_op(
    module: Any, changes: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in changes.items():
        monkeypatch.setattr(module, name, value)
    for call in _calls():
        assert find(call) is None, call.op
        assert backend.explain(call).refused["gpu"].startswith(reason), call.op


@pytest.mark.usefixtures("cuda")
def test_kernels_can_be_tried_on_rocm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "6.4")
    monkeypatch.setenv("TEMPERGAT_ROCM", "1")
    assert [find(call) for call in _calls()] == [gpu] * 5


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_float64_argument_among_float32_is_refused(place: int) -> None:
    for call in _calls()[:2]:
        tensors = list(call.tensors)
        tensors[place] = tensors[place].double()
        assert "float64" in str(refusal(gpu, call._replace(tensors=tuple(tensors))))


@pytest.mark.usefixtures("cuda")
def test_a_tensor_on_another_device_is_refused() -> None:
    for call in _calls():
        first, second, *rest = call.tensors
        moved = torch.empty(second.shape, dtype=second.dtype)
        wrong = call._replace(tensors=(first, moved, *rest))
        assert refusal(gpu, wrong) == (
            "the features are on cuda:0, another tensor on cpu"
        )


def test_features_on_the_cpu_are_not_for_the_gpu() -> None:
    call = Call("gat", ALL, (torch.zeros(2, 1, 1),), GRAPH)
    assert refusal(gpu, call) == "the features are on cpu, not on a CUDA device"


def test_tensors_of_several_devices_are_an_error_in_words() -> None:
    z, att = torch.zeros(2, 1, 4), torch.zeros(1, 4, device="meta")
    with pytest.raises(ValueError, match=r"from one device, got \['cpu', 'meta'\]"):
        ops.gat(GRAPH, z, att)


def test_choosing_a_backend_gives_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "library", cpu.Library(tmp_path / "_cpu.so"))
    z, att = torch.zeros(2, 1, 4), torch.zeros(1, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ops.explain(GRAPH, z).backend == "reference"
    with pytest.warns(RuntimeWarning, match="has no CPU kernels"):
        ops.gat(GRAPH, z, att)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("gridX, gridY, gridZ, stream, function, *args", "takes plain addresses"),
        (
            "gridX, gridY, gridZ, stream, function, kernel_metadata, launch_metadata, "
            "launch_enter_hook, launch_exit_hook, *args",
            "never tried on a GPU",
        ),
        ("grid, stream, function, args", "has another signature"),
    ],
)
def test_the_launch_path_follows_the_launcher_s_signature(
    parameters: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = pytest.importorskip("triton.backends.nvidia.driver")
    from tempergat.ops.gpu.launching import launch

    call = eval(f"lambda self, {parameters}: None")
    monkeypatch.setattr(driver.CudaLauncher, "__call__", call)
    launch.direct_launch.cache_clear()
    assert words in ops.launch_path()
    launch.direct_launch.cache_clear()


def test_the_launch_path_says_that_triton_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu, "TRITON", None)
    assert "triton is not installed" in ops.launch_path()


def test_compiled_code_asks_for_the_device_without_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu, "TRITON", None)
    monkeypatch.setattr(gpu, "_device_refusals", {})

    def refused(x: torch.Tensor) -> torch.Tensor:
        return x if gpu._device_refusal(0) is None else -x

    compiled = torch.compile(refused, fullgraph=True, backend="eager")
    assert compiled(torch.ones(1)).item() == -1
