"""Where the time goes when all seeds train at once on the CPU.

    python -m benchmarks.seeds_profile

Cora with the settings of `benchmarks.seeds`, 50 seeds, by torch's profiler: the time of
each operation without what it calls, over three epochs after the first two. Every
operation that takes at least 1 % goes to benchmarks/results/seeds_profile_cpu.csv. Its
share of the time is what to read; milliseconds depend on what else the machine does.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.origin import origin
from benchmarks.seeds import settings
from tempergat.data import load
from tempergat.training.groups import make_loop

RESULTS = Path(__file__).parent / "results" / "seeds_profile_cpu.csv"
EPOCHS = 3
# What an operation is for, by a part of its name.
PURPOSES = {
    "sparse_linear": "products with sparse features",
    "gat": "attention",
    "mm": "dense products",
    "adam": "optimiser",
    "elu": "activation",
    "dropout": "dropout",
    "copy": "copies",
    "cat": "copies",
}


def purpose_of(name: str) -> str:
    """In words, what an operation is for."""
    return next((words for part, words in PURPOSES.items() if part in name), "other")


def named(event: Any) -> str:
    """The name of an operation; that of a product with the shapes of its factors."""
    if "mm" not in event.key:
        return str(event.key)
    shapes = [shape for shape in event.input_shapes if len(shape) > 1]
    return f"{event.key} {' x '.join(map(str, shapes))}"


def measure(method: str, dropout: float, seeds: int) -> list[dict[str, Any]]:
    """The operations of a method, by falling time."""
    dataset, device = load("cora"), torch.device("cpu")
    config = settings(method, dropout, epochs=2 + EPOCHS)
    loop = make_loop(dataset, config, range(seeds), device)
    loop.run(until=2)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as record:
        loop.run()
    events = [
        (named(event), event.self_cpu_time_total, event.count)
        for event in record.key_averages(group_by_input_shape=True)
    ]
    merged: dict[str, tuple[float, int]] = {}
    for name, taken, count in events:
        before = merged.get(name, (0.0, 0))
        merged[name] = (before[0] + taken, before[1] + count)
    events = [(name, *numbers) for name, numbers in merged.items()]
    total = sum(time for _, time, _ in events)
    rows = [
        {
            "method": method,
            "dropout": dropout,
            "seeds": seeds,
            "operation": name,
            "purpose": purpose_of(name),
            "calls_per_epoch": round(count / EPOCHS, 1),
            "ms_per_epoch": round(time / EPOCHS / 1e3, 1),
            "share": round(time / total, 3),
        }
        for name, time, count in events
        if time >= 0.01 * total
    ]
    return sorted(rows, key=lambda row: -row["share"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=["gat", "gatv2"])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows = []
    for method in arguments.methods:
        rows += measure(method, 0.6, arguments.seeds)
    rows = [row | origin(torch.device("cpu")) for row in rows]
    for row in rows:
        print(*[row[key] for key in list(row)[:8]], sep="\t", flush=True)
    with arguments.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
