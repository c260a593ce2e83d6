"""How long a user waits the first time, in seconds, each measured in a new process.

    python -m benchmarks.first_minute --device cpu     # start-up, imports, the demo
    python -m benchmarks.first_minute --device cuda    # first step, `compare cora`

On a GPU, "cold" means that Triton's cache of compiled kernels is an empty folder, and
"warm" that the same command ran before and its kernels are kept. There the imports of
torch and PyG are timed too: they are the part of a command that is not ours. The first
import may have to compile their sources to bytecode, which an installation by pip has
done. What `compare cora` says is printed with the seconds since it was
started. Start-up times are medians of three. Rows are added to
benchmarks/results/first_minute_<device>.csv as they come; those without a target are
there for comparison.
"""

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.origin import add_row, origin

RESULTS = Path(__file__).parent / "results"
REPEATS = 3
FIELDS = ("what", "seconds", "cpu_seconds", "target", "met")
# Commands that list or refuse something, and the seconds they may take.
COMMANDS = (
    "methods",
    "data list",
    "data info corra",
    "data check corra",
    "compare corra",
    "train corra --method gat",
    "train cora --method gta",
    "predict model.ckpt corra",
)
LAYERS = {
    "GAT, plain": "TemperGATConv(128, 16, 8, temperature=None, gate=None)",
    "GAT, T and gate": "TemperGATConv(128, 16, 8)",
    "GATv2, plain": "TemperGATv2Conv(128, 16, 8, temperature=None, gate=None)",
    "GATv2, T and gate": "TemperGATv2Conv(128, 16, 8)",
}
IMPORTS = """
import time
import torch_geometric.nn
start = time.perf_counter()
from tempergat.nn import TemperGATConv, TemperGATv2Conv
print(time.perf_counter() - start)
"""
# Everything but our own kernels has been used before the clock starts.
FIRST_STEP = """
import time
import torch
from torch_geometric.nn import GATConv
from tempergat.nn import TemperGATConv, TemperGATv2Conv
x = torch.randn(2000, 128, device="cuda")
edges = torch.randint(2000, (2, 10000), device="cuda")
GATConv(128, 16, 8).cuda()(x, edges).sum().backward()
layer = {layer}.cuda()
torch.cuda.synchronize()
start = time.perf_counter()
layer(x, edges).sum().backward()
torch.cuda.synchronize()
print(time.perf_counter() - start)
"""


class Taken(NamedTuple):
    """Seconds that programs took: of the clock, and of processors."""

    seconds: float
    cpu_seconds: float


def taken_since(start: float, before: os.times_result) -> Taken:
    """What programs that were run since then took."""
    seconds, after = time.perf_counter() - start, os.times()
    user = after.children_user - before.children_user
    system = after.children_system - before.children_system
    return Taken(seconds, user + system)


def run(*words: str, **variables: str) -> tuple[str, Taken]:
    """What a Python program printed, and how long it took."""
    start, before = time.perf_counter(), os.times()
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env=os.environ | variables,
    )
    taken = taken_since(start, before)
    # 2 is the status of a refusal.
    if done.returncode not in (0, 2):
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stderr[-2000:]}")
    return done.stdout, taken


def run_compare(out: Path, **variables: str) -> tuple[float, Taken]:
    """Runs `compare cora`: seconds until it has read the graph, and of the whole."""
    start, before = time.perf_counter(), os.times()
    read = 0.0
    with subprocess.Popen(
        [sys.executable, "-m", "tempergat", "compare", "cora", "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | variables,
    ) as process:
        for line in process.stderr or ():
            now = time.perf_counter() - start
            read = read or now
            print(f"{now:8.2f} s  {line.rstrip()}", flush=True)
    if process.returncode:
        raise SystemExit(f"tempergat compare cora failed: {line}")
    return read, taken_since(start, before)


def row(
    what: str,
    seconds: float,
    target: float | None,
    cpu_seconds: float | None = None,
) -> dict[str, Any]:
    """A row of the table."""
    found = {
        "what": what,
        "seconds": f"{seconds:.2f}",
        "cpu_seconds": "" if cpu_seconds is None else f"{cpu_seconds:.2f}",
        "target": "" if target is None else str(target),
        "met": "" if target is None else ("yes" if seconds < target else "no"),
    }
    print(*found.values(), sep="\t", flush=True)
    return found


def start_up() -> Iterator[dict[str, Any]]:
    """Commands that need no torch, and the import of the layers."""
    for command in COMMANDS:
        words = ("-m", "tempergat", *command.split())
        times = [run(*words)[1] for _ in range(REPEATS)]
        taken = sorted(times)[REPEATS // 2]
        yield row(f"tempergat {command}", taken.seconds, 1, taken.cpu_seconds)
    times = [float(run("-c", IMPORTS)[0]) for _ in range(REPEATS)]
    yield row("import of the layers after PyG's", statistics.median(times), 0.3)
    theirs = "import torch, torch_geometric"
    _, taken = run("-c", theirs)
    yield row("import of torch and PyG", taken.seconds, None, taken.cpu_seconds)
    with tempfile.TemporaryDirectory() as empty:
        without = {"PYTHONPYCACHEPREFIX": empty, "PYTHONDONTWRITEBYTECODE": "1"}
        _, taken = run("-c", theirs, **without)
    what = "import of torch and PyG, no bytecode"
    yield row(what, taken.seconds, None, taken.cpu_seconds)


def demonstration() -> Iterator[dict[str, Any]]:
    """The command of `make demo`."""
    with tempfile.TemporaryDirectory() as folder:
        _, taken = run("-m", "tempergat", "compare", "--out", folder)
        yield row("make demo, installed", taken.seconds, 40, taken.cpu_seconds)


def on_gpu(layers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Imports, first steps with nothing compiled, then `compare cora` twice."""
    everything = (
        "import torch, torch_geometric, tempergat.comparison, matplotlib, scipy"
    )
    _, taken = run("-c", everything)
    yield row(
        "import of everything, first time", taken.seconds, None, taken.cpu_seconds
    )
    _, taken = run("-c", "import torch, torch_geometric")
    yield row("import of torch and PyG", taken.seconds, None, taken.cpu_seconds)
    for name, layer in ((name, LAYERS[name]) for name in layers):
        with tempfile.TemporaryDirectory() as cache:
            program = FIRST_STEP.format(layer=layer)
            printed, _ = run("-c", program, TRITON_CACHE_DIR=cache)
        yield row(f"first step, cold: {name}", float(printed), 4)
    with tempfile.TemporaryDirectory() as folder:
        for times, target in (("cold", 20), ("warm", 6)):
            out = Path(folder) / times
            read, taken = run_compare(out, TRITON_CACHE_DIR=f"{folder}/cache")
            what = f"tempergat compare cora, {times}"
            yield row(what, taken.seconds, target, taken.cpu_seconds)
            yield row(f"{what}: until the graph is read", read, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--no-demo", action="store_true", help="only start-up times")
    parser.add_argument(
        "--layers", nargs="*", choices=[*LAYERS], default=[*LAYERS], help="first steps"
    )
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    parts = [on_gpu(arguments.layers)]
    if device.type == "cpu":
        parts = [start_up(), *([] if arguments.no_demo else [demonstration()])]
    about = origin(device)
    out = arguments.out or RESULTS / f"first_minute_{device.type}.csv"
    for found in itertools.chain.from_iterable(parts):
        add_row(out, found | about, [*FIELDS, *about])


if __name__ == "__main__":
    main()
