"""The CPU kernels against the reference, by name, and how they are found."""

import ctypes
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tempergat import ops
from tempergat.base.errors import UserError
from tempergat.ops import Graph
from tempergat.ops.cpu import build
from tempergat.ops.cpu import library as cpu
from tempergat.ops.cpu.library import CALL_SIZE
from tempergat.ops.random import keep_mask
from tests.support.attention_cases import (
    GRAPHS,
    Settings,
    attend,
    by_kernel,
    by_torch,
    compare,
    make_inputs,
    results,
)
from tests.support.processes import ProcessStarter

pytestmark = pytest.mark.usefixtures("kernels", "poisoned")
DTYPES = [torch.float32, torch.float64, torch.bfloat16]
KINDS = ["gat", "gatv2", "dot_product"]


@pytest.fixture(name="poisoned")
def poison_new_memory() -> Iterator[None]:
    """Fills what torch allocates without initialising it with NaN."""
    torch.use_deterministic_algorithms(True)
    assert torch.zeros(1).new_empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_every_result_is_as_exact_as_pytorch(kind: str, dtype: Any, graph: str) -> None:
    compare(kind, GRAPHS[graph](), 3, 5, dtype, Settings(), "cpu")
    everything = Settings(edge=True, dropout=0.4, weights=True)
    compare(kind, GRAPHS[graph](), 2, 16, dtype, everything, "cpu")


@pytest.mark.parametrize("channels", [1, 7, 8, 9, 16, 24, 33, 64])
@pytest.mark.parametrize("heads", [1, 17])
@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_heads_and_channels(kind: str, heads: int, channels: int) -> None:
    graph = GRAPHS["self_loops"]()
    for dtype in DTYPES:
        compare(kind, graph, heads, channels, dtype, Settings(dropout=0.5), "cpu")


@pytest.mark.parametrize(
    "options",
    [
        Settings(edge=True),
        Settings(targets=None),
        Settings(targets=None, theta="head"),
        Settings(targets="shared", theta="layer"),
        Settings(theta="head"),
        Settings(weights=True),
        Settings(weights=True, dropout=0.6),
        Settings(dropout=0.9),
        Settings(negative_slope=0.0),
        Settings(negative_slope=-0.5),
        Settings(temperature=1e-3),
        Settings(temperature=1e-3, edge=True, dropout=0.4, weights=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_option_and_its_gradients(kind: str, options: Settings) -> None:
    for dtype in DTYPES:
        compare(kind, GRAPHS["hub"](), 2, 8, dtype, options, "cpu")


@pytest.mark.parametrize("width", [1, 13])
@pytest.mark.parametrize(
    "options",
    [
        Settings(),
        Settings(edge=True, dropout=0.4, weights=True),
        Settings(temperature=1e-3, negative_slope=-0.5),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["gatv2", "dot_product"])
def test_projected_edge_features_and_their_gradients(
    kind: str, width: int, options: Settings
) -> None:
    options = options._replace(edge_width=width)
    for graph, heads, channels in (
        ("hub", 3, 5),
        ("bipartite", 2, 16),
        ("self_loops", 1, 8),
        ("empty_rows", 17, 33),
        ("no_edges", 2, 4),
    ):
        for dtype in DTYPES:
            compare(kind, GRAPHS[graph](), heads, channels, dtype, options, "cpu")


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_drawn_shapes_and_options(data: Any) -> None:
    sources, targets = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12))
    edges = data.draw(
        st.lists(
            st.tuples(st.integers(0, sources - 1), st.integers(0, targets - 1)),
            max_size=60,
        )
    )
    index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    graph = Graph(index, (sources, targets), self_loops=data.draw(st.booleans()))
    options = Settings(
        edge=data.draw(st.booleans()),
        edge_width=data.draw(st.sampled_from([0, 2, 9])),
        targets=data.draw(st.sampled_from([None, "own"])),
        theta=data.draw(st.sampled_from([None, "layer", "head"])),
        dropout=data.draw(st.sampled_from([0.0, 0.3])),
        weights=data.draw(st.booleans()),
        edge_weight=data.draw(st.booleans()),
        edge_bias=data.draw(st.booleans()),
    )
    kind, dtype = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(DTYPES))
    heads, channels = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 20))
    compare(kind, graph, heads, channels, dtype, options, "cpu")


@pytest.mark.parametrize("isa", cpu.ISAS)
def test_every_instruction_set_gives_the_same_results(
    isa: str, kernels: cpu.Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cpu.ISAS.index(isa) > kernels.best_isa:
        pytest.skip(f"this machine has no {isa}")
    monkeypatch.setattr(kernels, "isa", cpu.ISAS.index(isa))
    everything = Settings(edge=True, edge_width=5, dropout=0.4, weights=True)
    everything = everything._replace(edge_weight=True, edge_bias=True)
    for kind in KINDS:
        for dtype in DTYPES:
            for channels in (7, 8, 16, 20):
                compare(kind, GRAPHS["hub"](), 2, channels, dtype, everything, "cpu")


def test_graph_with_wide_indices() -> None:
    graph = GRAPHS["self_loops"]()
    wide = Graph.__new__(Graph)
    wide.__dict__.update(graph.__dict__)
    for name in ("src", "dst", "edge_id"):
        setattr(wide, name, getattr(graph, name).long())
    wide._by_target = wide._by_source = None
    assert wide.by_target.pointer.dtype == torch.int64
    for kind in KINDS:
        options = Settings(edge=True, dropout=0.4, weights=True)
        compare(kind, wide, 2, 8, torch.float32, options, "cpu")


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_dropped_exactly_where_the_random_bits_say(kind: str) -> None:
    graph, heads = GRAPHS["self_loops"](), 5
    inputs = make_inputs(kind, graph, heads, 3, torch.float32, Settings())
    seed = torch.randint(-(2**63), 2**63 - 1, (heads,))
    options: Any = {"dropout": 0.5, "dropout_seed": seed, "return_weights": True}
    _, weights = attend(kind, graph, inputs, **options)
    assert torch.equal(weights != 0, keep_mask(seed, graph.edge_id[:, None], 0.5))


def _big_call(kind: str, copies: int = 1) -> Callable[[], dict[str, torch.Tensor]]:
    # Enough work for many chunks.
    edge_index = torch.randint(400, (2, 6000))
    graph = Graph(edge_index, 400, self_loops=True).repeat(copies)
    options = Settings(edge=True, edge_width=3, dropout=0.3, weights=True)
    inputs = make_inputs(kind, graph, 4, 64, torch.float32, options)
    incoming = (torch.randn(copies * 400, 4, 64), torch.randn(graph.src.numel(), 4))
    seed = torch.arange(4)

    call = by_kernel(kind, weights=True)
    return lambda: results(kind, call, graph, inputs, options, seed, incoming)


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_results_do_not_depend_on_the_number_of_threads(kind: str, copies: int) -> None:
    before, call = torch.get_num_threads(), _big_call(kind, copies)
    try:
        found = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found.append(call())
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        for name, value in found[0].items():
            assert torch.equal(value, other[name]), name


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux")
def test_a_call_runs_on_as_many_threads_as_torch_does(python: ProcessStarter) -> None:
    script = """
import os, torch
from tempergat import ops
torch.set_num_threads(1)
graph = ops.Graph(torch.randint(400, (2, 9000)), 400)
z, att = torch.randn(400, 4, 64), torch.randn(4, 64)
found = []
for threads in (1, 2, 5):
    torch.set_num_threads(threads)
    ops.gat(graph, z, att, att)
    # OpenMP keeps the threads it once made.
    found.append(len(os.listdir("/proc/self/task")))
print([after - found[0] for after in found])
"""
    done = python.run(script)
    assert done.stdout.strip() == "[0, 1, 4]", done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_repeats_are_bitwise_equal(kind: str) -> None:
    graph = GRAPHS["hub"]()
    options = Settings(edge=True, edge_width=3, dropout=0.3, weights=True)
    inputs = make_inputs(kind, graph, 3, 9, torch.float32, options)
    rest = (torch.arange(3), (torch.randn(40, 3, 9), torch.randn(600, 3)))

    call = by_kernel(kind, weights=True)
    first = results(kind, call, graph, inputs, options, *rest)
    for _ in range(99):
        again = results(kind, call, graph, inputs, options, *rest)
        for name, value in first.items():
            assert torch.equal(value, again[name]), name


def test_large_logits_neither_overflow_nor_vanish() -> None:
    graph = GRAPHS["hub"]()
    z, att = torch.randn(40, 2, 8), torch.linspace(-3e4, 3e4, 16).view(2, 8)
    fast, fast_weights = ops.gat(graph, z, att, return_weights=True)
    slow, slow_weights = by_torch("gat")(graph, z, att, 0.2, 0.0, None)
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(fast_weights, slow_weights)


def test_an_edge_with_logit_minus_infinity_has_no_weight() -> None:
    graph = Graph(torch.tensor([[0, 1, 2], [0, 0, 0]]), 3)
    z, att = torch.randn(3, 1, 4), torch.zeros(1, 4)
    masked = torch.tensor([[0.0], [-torch.inf], [0.0]])
    out, weights = ops.gat(graph, z, att, edge_score=masked, return_weights=True)
    assert weights is not None
    assert weights.flatten().tolist() == [0.5, 0.0, 0.5]
    torch.testing.assert_close(out[0], (z[0] + z[2]) / 2)


def test_edges_with_logit_minus_infinity_may_come_first() -> None:
    # More of them than are worked on together.
    spokes = torch.arange(200)
    graph = Graph(torch.stack([spokes, torch.zeros_like(spokes)]), 200)
    masked = torch.randn(200, 3)
    masked[:150] = -torch.inf
    z, att = torch.randn(200, 3, 4), torch.randn(3, 4)
    inputs = (z, att, att, z, masked)
    found, expected = ([x.clone().requires_grad_() for x in inputs] for _ in range(2))
    out, weights = ops.gat(graph, *found, return_weights=True)
    slow, slow_weights = by_torch("gat")(graph, *expected, 0.2, 0.0, None)
    torch.testing.assert_close(weights, slow_weights)
    torch.testing.assert_close(out, slow)
    out.sin().sum().backward()
    slow.sin().sum().backward()
    for fast, plain in zip(found, expected, strict=True):
        torch.testing.assert_close(fast.grad, plain.grad)


@pytest.mark.parametrize("kind", KINDS)
def test_nan_features_reach_only_their_targets_and_heads(kind: str) -> None:
    graph = Graph(torch.tensor([[0, 1, 2, 2], [0, 0, 1, 2]]), 3)
    inputs = make_inputs(kind, graph, 2, 7, torch.float32, Settings())
    next(iter(inputs.values()))[1, 1, 3] = torch.nan
    out, _ = attend(kind, graph, inputs)
    assert out[0, 1].isnan().any()
    assert not out[0, 0].isnan().any()
    assert not out[1:].isnan().any()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_wider_matrix_are_read_in_place(kind: str) -> None:
    graph = GRAPHS["random"]()
    inputs = make_inputs(kind, graph, 2, 7, torch.float32, Settings())
    name = next(iter(inputs))
    wide = torch.cat([inputs[name].flatten(1), torch.randn(23, 5)], dim=1)
    slice_ = wide[:, :14].view(23, 2, 7)
    assert not slice_.is_contiguous()
    expected, _ = attend(kind, graph, inputs)
    out, _ = attend(kind, graph, inputs | {name: slice_})
    assert torch.equal(out, expected)


def test_half_precision_is_refused_and_served_by_the_reference() -> None:
    graph = GRAPHS["random"]()
    z = torch.randn(23, 2, 4, dtype=torch.float16)
    choice = ops.explain(graph, z)
    assert choice.backend == "reference"
    assert "torch.float16" in choice.refused["cpu"]


def test_a_missing_library_warns_once_and_the_reference_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, z = GRAPHS["random"](), torch.randn(23, 2, 4)
    att = torch.randn(2, 4)
    expected, _ = ops.gat(graph, z, att, att)
    monkeypatch.setattr(cpu, "library", cpu.Library(tmp_path / "_cpu.so"))
    with pytest.warns(RuntimeWarning, match=r"python -m tempergat\.ops\.cpu\.build"):
        out, _ = ops.gat(graph, z, att, att)
    torch.testing.assert_close(out, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ops.gat(graph, z, att, att)
    assert "was not built" in ops.explain(graph, z).refused["cpu"]


def _compiled(source: str, folder: Path) -> Path:
    (folder / "other.c").write_text(source)
    compiler = build.find_compiler()
    assert compiler is not None
    path = folder / "_cpu.so"
    command = [compiler, "-x", "c", "-shared", "-fPIC", "-o", str(path)]
    subprocess.run([*command, str(folder / "other.c")], check=True)
    return path


def _returning(**values: int) -> str:
    """The source of functions that return these numbers."""
    lines = [f"long {name}(void) {{ return {n}; }}\n" for name, n in values.items()]
    return "".join(lines)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (_returning(tempergat_interface_version=12345), "12345"),
        (
            _returning(
                tempergat_interface_version=cpu.INTERFACE_VERSION,
                tempergat_call_size=8,
            ),
            "a call of _cpu.so has 8 bytes",
        ),
        (_returning(something_else=0), "tempergat_interface_version"),
    ],
)
def test_a_library_with_another_interface_is_refused(
    source: str, message: str, tmp_path: Path
) -> None:
    assert message in str(cpu.Library(_compiled(source, tmp_path)).problem)


def test_the_built_library_knows_the_size_of_a_call(kernels: cpu.Library) -> None:
    size = ctypes.CDLL(str(kernels.path)).tempergat_call_size()
    assert size == CALL_SIZE


def test_a_broken_library_is_refused_with_the_loaders_reason(tmp_path: Path) -> None:
    (tmp_path / "_cpu.so").write_bytes(b"not a library")
    assert "_cpu.so" in str(cpu.Library(tmp_path / "_cpu.so").problem)


def test_building_without_a_compiler_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(UserError, match="no C\\+\\+ compiler"):
        build.build(tmp_path / "_cpu.so")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write .*missing.*No such file"):
        build.build(tmp_path / "missing" / "_cpu.so")


def test_a_compiler_that_cannot_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "c++"
    broken.write_bytes(b"\x7fELF, but no program")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(UserError, match="Exec format error"):
        build.build(tmp_path / "_cpu.so")


def test_a_compiler_without_openmp_builds_kernels_for_one_thread(
    tmp_path: Path,
) -> None:
    real = build.find_compiler()
    refuses = tmp_path / "c++"
    refuses.write_text(
        f'#!/bin/sh\ncase "$*" in *-fopenmp*) exit 1;; esac\nexec {real} "$@"\n'
    )
    refuses.chmod(0o755)
    assert real is not None
    assert build._openmp(real, tmp_path) == build._OPENMP
    assert build._openmp(str(refuses), tmp_path) == []


def test_kernels_use_torchs_openmp_where_torch_keeps_it_to_itself(
    tmp_path: Path,
) -> None:
    # As in torch's wheels for ARM and macOS, on a system that has no OpenMP.
    script = """
import ctypes, ctypes.util
ctypes.util.find_library = lambda name: None
class Local(ctypes.CDLL):
    def __init__(self, name, mode=0, **options):
        super().__init__(name, 0 if "global_deps" in str(name) else mode, **options)
ctypes.CDLL = Local
from tempergat.ops.cpu.library import library
print(library.problem)
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "None\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_does_not_wait_for_threads_it_does_not_have(
    python: ProcessStarter,
) -> None:
    script = """
import os, signal, torch
from tempergat import ops
torch.set_num_threads(2)
graph = ops.Graph(torch.randint(400, (2, 9000)), 400)
z, att = torch.randn(400, 4, 64), torch.randn(4, 64)
expected, _ = ops.gat(graph, z, att, att)
child = os.fork()
if child == 0:
    # Whoever waits for ever is ended by the alarm.
    signal.alarm(60)
    out, _ = ops.gat(graph, z, att, att)
    os._exit(0 if bytes(out.numpy()) == bytes(expected.numpy()) else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = python.run(script)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_calls_from_several_threads_do_not_disturb_each_other(kind: str) -> None:
    call = _big_call(kind)
    expected = call()
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: call(), range(6)))
    for name, value in expected.items():
        assert all(torch.equal(value, other[name]) for other in found), name


def test_a_failing_compiler_leaves_the_old_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "_cpu.so").write_bytes(b"old")
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(UserError, match="failed"):
        build.build(tmp_path / "_cpu.so")
    assert (tmp_path / "_cpu.so").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["_cpu.so"]
