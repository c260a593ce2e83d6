"""How busy an epoch of 50 seeds keeps a GPU, and what a second group beside it gains.

    python -m benchmarks.device_use [--out FILE] [cora citeseer pubmed]

An epoch is a CUDA graph, as in training. `kernels_ms_per_epoch` is the time of its
kernels from torch's profiler, `ms_per_epoch` the time on the clock. Two groups at once
are replayed on two streams, and compared with one after the other. The largest kernels
of each epoch are rows as well. Rows are added to
benchmarks/results/device_use_cuda.csv.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.origin import add_row, origin
from tempergat.data import load
from tempergat.training import load_recipe
from tempergat.training.groups import make_loop
from tempergat.training.loop import Loop

RESULTS = Path(__file__).parent / "results" / "device_use_cuda.csv"
METHODS = ("gat", "temp_gated_v2")
SEEDS = 50
EPOCHS = 10
# Epochs after which training has been captured as a graph.
CAPTURED = 5
LARGEST = 4
FIELDS = (
    "graph", "what", "seeds", "kernels_ms_per_epoch", "ms_per_epoch",
    "times_faster_than_one_after_the_other",
)  # fmt: skip


def captured(name: str, method: str) -> Loop:
    """A training whose epochs are replayed from here on."""
    config = load_recipe(name).config_for(method)
    loop = make_loop(load(name), config, range(SEEDS), torch.device("cuda"))
    loop.run(until=CAPTURED)
    return loop


def clock_ms(trainings: Sequence[Loop]) -> float:
    """Milliseconds for an epoch of each training, at once."""
    streams = [torch.cuda.Stream() for _ in trainings]
    torch.cuda.synchronize()
    start = time.perf_counter()
    until = trainings[0].epochs_done + EPOCHS
    for _ in range(EPOCHS):
        for training, stream in zip(trainings, streams, strict=True):
            with torch.cuda.stream(stream):
                training.run(until=min(until, training.epochs_done + 1))
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / EPOCHS * 1e3


def kernels_ms(training: Loop) -> Counter[str]:
    """Milliseconds of each kernel in an epoch."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        training.run(until=training.epochs_done + 2)
        torch.cuda.synchronize()
    found: Counter[str] = Counter()
    for event in profiled.events():
        if event.device_type.name == "CUDA":
            found[event.name[:60]] += event.device_time_total / 2000
    return found


def rows_of(name: str) -> Iterator[dict[str, Any]]:
    """The rows of one graph."""
    trainings = {method: captured(name, method) for method in METHODS}
    alone = {}
    for method, training in trainings.items():
        kernels = kernels_ms(training)
        alone[method] = clock_ms([training])
        yield {
            "what": method,
            "kernels_ms_per_epoch": f"{sum(kernels.values()):.2f}",
            "ms_per_epoch": f"{alone[method]:.2f}",
        }
        for kernel, taken_ms in kernels.most_common(LARGEST):
            what = f"{method}, {kernel}"
            yield {"what": what, "kernels_ms_per_epoch": f"{taken_ms:.2f}"}
    together = clock_ms(list(trainings.values()))
    yield {
        "what": f"{' + '.join(METHODS)} at once",
        "ms_per_epoch": f"{together:.2f}",
        "times_faster_than_one_after_the_other": (
            f"{sum(alone.values()) / together:.2f}"
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    about = origin(torch.device("cuda"))
    for name in arguments.graphs:
        for row in rows_of(name):
            print(name, row, flush=True)
            row = {"graph": name, "seeds": SEEDS} | row | about
            add_row(arguments.out, row, [*FIELDS, *about])


if __name__ == "__main__":
    main()
