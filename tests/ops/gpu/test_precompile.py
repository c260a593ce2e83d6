"""Kernels that are compiled before they are needed."""

import subprocess
import sys
import threading
from typing import Any

import pytest
import torch

from tempergat import ops
from tempergat.nn import TemperGATConv, TemperGATv2Conv
from tempergat.ops.gpu.launching.precompile import BackgroundThreads, CompileRequest
from tests.support.interpreted import environment_of_programs


@pytest.mark.parametrize("op", ["gat", "gatv2", "dot_product"])
def test_a_dry_run_compiles_what_is_needed_in_order_for_any_slope(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton")
    from tempergat.ops.gpu import gatv2_forward
    from tempergat.ops.gpu.launching import dry_run, launch

    def launches(slope: float) -> tuple[list[str], list[type]]:
        names: list[str] = []
        numbers: list[type] = []

        def note(kernel: Any, types: Any, values: Any, *_: Any) -> None:
            names.append(kernel.__name__)
            numbers.extend(map(type, values))

        monkeypatch.setattr(dry_run, "_SETTINGS", (slope,))
        everything = dict.fromkeys(("dropout", "gate", "edge", "learnt", "weights"), 1)
        with launch.compile_only(0, note):
            for options in (everything, {}, {"gate": True, "learnt": True}):
                dry_run.launch_kernels(CompileRequest(op, 8, 16, **options))
        return names, numbers

    monkeypatch.setattr(gatv2_forward, "_cache_size", lambda device: 50 * 2**20)
    names, numbers = launches(0.2)
    order = ("key", "group", "seeds", "merge_softmax", "backward_rows", "merge_sum")
    places = [names.index(f"_{name}_kernel") for name in order]
    assert places == sorted(places)
    # Triton compiles another kernel for a whole number, and yet another for 1.
    assert launches(1) == (names, numbers)
    assert len(names) >= 12


# One function is running when the process ends, 100 wait. What was registered
# first is called last.
ENDING = """
import atexit, sys, threading, time
from concurrent.futures import CancelledError

def late():
    try:
        last.result(timeout=20)
    except CancelledError:
        print("cancelled")

atexit.register(late)
from tempergat.ops.gpu.launching.precompile import BackgroundThreads

def run():
    begun.set()
    time.sleep(0.5)
    print("finished")

begun = threading.Event()
threads = BackgroundThreads(1)
threads.submit(run)
for _ in range(100):
    last = threads.submit(lambda: time.sleep(0.5))
begun.wait()
print("end")
"""

# A thread still looks for kernels when the process ends.
DRY_RUN = """
import threading, time, types
from tempergat.ops.gpu.launching import precompile

def find(name):
    begun.set()
    time.sleep(0.5)
    print("found")
    return types.SimpleNamespace(compile_kernels=lambda *_: print("compiled"))

begun = threading.Event()
precompile.importlib = types.SimpleNamespace(import_module=find)
precompile.start(precompile.CompileRequest("gat", 8, 16), None, 0)
begun.wait()
print("end")
"""


@pytest.mark.parametrize(
    ("program", "words"),
    [(ENDING, "end finished cancelled"), (DRY_RUN, "end found")],
    ids=["compiling", "looking for kernels"],
)
def test_a_process_ends_with_what_is_begun_and_drops_the_rest(
    program: str, words: str
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=environment_of_programs(),
        capture_output=True,
        text=True,
        check=True,
        timeout=40,
    )
    assert run.stdout.split() == words.split()


def test_threads_give_results_and_errors() -> None:
    threads = BackgroundThreads(2)
    assert threads.submit(lambda: 3).result() == 3
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 / 0).result()
    threads.close()


def test_nothing_is_compiled_without_a_gpu() -> None:
    before = threading.active_count()
    ops.compile_ahead("gat", 8, 16, device="cpu")
    assert threading.active_count() == before


def test_an_unknown_op_is_refused() -> None:
    with pytest.raises(
        ValueError, match="op must be one of gat, gatv2, dot_product, dropout"
    ):
        ops.compile_ahead("gta", 8, 16)


@pytest.mark.gpu
@pytest.mark.parametrize("layer_class", [TemperGATConv, TemperGATv2Conv])
def test_a_layer_needs_no_other_kernels_than_those_compiled_ahead(
    layer_class: type[TemperGATConv] | type[TemperGATv2Conv],
) -> None:
    from triton import knobs

    from tempergat.ops.gpu.launching import launch, precompile

    # A size that no other test has.
    layer = layer_class(16, 24, heads=5, dropout=0.5).cuda()
    edge_index = torch.randint(200, (2, 3000), device="cuda")
    # Some rows are cut.
    edge_index[:, :500] %= 2
    x = torch.randn(200, 16, device="cuda")
    ops.compile_ahead(layer.attention, 5, 24, dropout=True, gate=True, learnt=True)
    for request in precompile.requests.values():
        request.result()
    assert launch._compiling
    for future in list(launch._compiling.values()):
        future.result()
    compiled = []
    knobs.compilation.listener = lambda **facts: compiled.append(facts["src"].name)
    try:
        layer(x, edge_index).sum().backward()
    finally:
        knobs.compilation.listener = None
    assert compiled == []
    assert not layer.lin_gate.weight.grad.isnan().any()
