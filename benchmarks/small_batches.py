"""Batches of molecules: GraphLoader beside PyG's DataLoader, alone and in training.

    python -m benchmarks.small_batches
    python -m benchmarks.small_batches --tables epoch --layers GAT --rounds 3

The first table has milliseconds of wall time for a shuffled batch of GraphLoader, and
of PyG's loader without workers and with two, which are forked before the clock starts
and kept from epoch to epoch. All batches of an epoch are compared first, from the same
state of torch's generator. "Copy" is a floor: the tensors of a batch are copied into
memory in use. The process, with its workers, has so many cores and torch's threads.

The second table has milliseconds of processor time on one core for a step of an epoch,
loader included: five attention layers with batch norm between them, a sum over each
graph, and Adam. Ours have temperature and gate, eager or compiled with `dynamic=True`,
and GraphLoader; PyG's are eager, with PyG's loader without workers. PyG's model and
ours without temperature and gate start from the same weights, and the losses of their
first steps are compared first; ours with both are compared with the same layers that
build their messages as PyG does. A row whose check fails has no times.

Times are medians of rounds, an epoch each, in which all take turns. Rows are added to
benchmarks/results/small_batches.csv. Cores are chosen as Linux does it.
"""

import argparse
import copy
import multiprocessing
import os
import statistics
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from benchmarks.molecules import (
    ATOMS,
    BONDS,
    LAYERS,
    TOLERANCE,
    Size,
    difference_of,
    make_models,
)
from benchmarks.origin import add_row, origin
from benchmarks.small_graphs import RESULTS
from tempergat import GraphLoader

CHANNELS, EDGE_DIM = 16, 8
# How many molecules an epoch has.
LOADED, TRAINED = 8_192, 2_048
# Epochs that compile and warm up, and steps whose losses are compared.
WARM_UP, COMPARED = 2, 4
# How many times PyG's speed the loader has at least, by graphs and features.
LOADER_TARGETS = {(512, 64): 6.0, (512, 16): 10.0, (32, 64): 5.0, (32, 16): 5.0}
# How many times PyG's time an epoch of 512 graphs a batch takes at most.
EPOCH_TARGETS = {"GAT": 0.68, "GATv2": 0.76, "transformer": 0.95}
Row = dict[str, Any]


def draw_molecules(count: int, num_features: int) -> list[Data]:
    """Molecules of 15 to 35 atoms, in the mean 25: chains with three rings."""
    generator = torch.Generator().manual_seed(0)
    drawn = []
    for atoms in torch.randint(15, 36, (count,), generator=generator).tolist():
        chain = torch.stack([torch.arange(atoms - 1), torch.arange(1, atoms)])
        rings = torch.randint(
            atoms - 2, (2, BONDS // 2 - ATOMS + 1), generator=generator
        )
        # Both ends are different.
        rings[1] = (rings[0] + 2 + rings[1] % (atoms - 3)) % atoms
        half = torch.cat([chain, rings], 1)
        edge_index = torch.stack([half, half.flip(0)], 2).flatten(1)
        x = torch.randn(atoms, num_features, generator=generator)
        edge_attr = torch.randn(edge_index.size(1), EDGE_DIM, generator=generator)
        y = torch.randn(1, 1, generator=generator)
        drawn.append(Data(x, edge_index, edge_attr, y))
    return drawn


def are_equal(ours: Collection[Any], theirs: Collection[Any]) -> bool:
    """Whether two loaders give the same batches from the same generator state."""
    if len(ours) != len(theirs):
        return False
    torch.manual_seed(0)
    found = [_tensors(batch) for batch in ours]
    torch.manual_seed(0)
    # One after the other: tensors of workers are open files.
    for one, other in zip(found, map(_tensors, theirs), strict=True):
        if one.keys() != other.keys():
            return False
        if not all(torch.equal(value, other[name]) for name, value in one.items()):
            return False
    return True


def _tensors(batch: Any) -> dict[str, Tensor]:
    return {**batch.to_dict(), "num_graphs": torch.tensor(batch.num_graphs)}


def measure_loader(graphs: int, features: int, cores: int, rounds: int) -> Row:
    """A row of the first table; it sets the cores of this process."""
    _use_cores(cores)
    row: Row = {"table": "loader", "graphs": graphs, "features": features}
    row |= {"cores": cores, **origin(torch.device("cpu"))}
    data = draw_molecules(LOADED, features)
    # Two workers on one core are what is asked for.
    warnings.filterwarnings("ignore", "This DataLoader will create 2 worker")
    kept = {"persistent_workers": True, "multiprocessing_context": "fork"}
    theirs = DataLoader(data, graphs, shuffle=True)
    workers = DataLoader(data, graphs, shuffle=True, num_workers=2, **kept)
    ours = GraphLoader(data, graphs, shuffle=True)
    same = all(are_equal(ours, other) for other in (theirs, workers))
    row["check"] = "passed" if same else "FAILED"
    if not same:
        return row
    batch = _tensors(next(iter(ours)))
    # With numpy, whose copies take one thread, as our loader does.
    pairs = [(value.numpy().copy(), value.numpy()) for value in batch.values()]
    ways = {
        "pyg": lambda: _run_through(theirs),
        "workers": lambda: _run_through(workers),
        "ours": lambda: _run_through(ours),
        "copy": lambda: [np.copyto(a, b) for _ in range(len(ours)) for a, b in pairs],
    }
    ms = _medians(ways, len(ours), rounds, time.perf_counter)
    row |= {f"{name}_ms": f"{value:.4f}" for name, value in ms.items()}
    times = ms["pyg"] / ms["ours"]
    row["times_faster"] = f"{times:.2f}"
    return row | _judged(LOADER_TARGETS.get((graphs, features)), times.__ge__)


def measure_epoch(graphs: int, layer: str, rounds: int) -> Row:
    """A row of the second table; it sets the cores of this process."""
    _use_cores(1)
    size = Size(graphs, graphs * ATOMS, graphs * BONDS)
    row: Row = {"table": "epoch", "graphs": graphs, "features": size.num_features}
    row |= {"cores": 1, "layer": layer, **origin(torch.device("cpu"))}
    data = draw_molecules(TRAINED, size.num_features)
    options = {"batch_size": graphs, "shuffle": True, "drop_last": True}
    theirs, ours = DataLoader(data, **options), GraphLoader(data, **options)
    models = {
        model.name: model for model in make_models(size, layer, CHANNELS, EDGE_DIM)
    }
    losses = [
        train(copy.deepcopy(models[name].module), loader, COMPARED)
        for name, loader in (("pyg", theirs), ("plain", ours))
    ]
    expected, found = map(torch.stack, losses)
    batch = _arguments(next(iter(ours)))
    difference = max(
        float(((found - expected) / expected).abs().max()),
        *(difference_of(models[name], batch) for name in ("both", "both_compiled")),
    )
    row["difference"] = f"{difference:.1e}"
    row["check"] = "passed" if difference < TOLERANCE else "FAILED"
    if row["check"] == "FAILED":
        return row
    ways: dict[str, Callable[[], Any]] = {
        "pyg_loader": lambda: _run_through(theirs),
        "ours_loader": lambda: _run_through(ours),
    }
    for way, name, loader in (
        ("pyg", "pyg", theirs),
        ("ours", "both", ours),
        ("ours_compiled", "both_compiled", ours),
    ):
        module = models[name].module
        optimizer = torch.optim.Adam(module.parameters(), lr=1e-4)
        ways[way] = lambda parts=(module, loader, None, optimizer): train(*parts)
    ms = _medians(ways, len(ours), rounds, time.process_time)
    row |= {f"{name}_ms": f"{value:.3f}" for name, value in ms.items()}
    row["faster"] = min("ours", "ours_compiled", key=lambda name: ms[name])
    ratio = ms[row["faster"]] / ms["pyg"]
    row["ratio"] = f"{ratio:.2f}"
    target = EPOCH_TARGETS[layer] if graphs == 512 else None
    return row | _judged(target, ratio.__le__)


def train(
    module: nn.Module,
    loader: Iterable[Any],
    steps: int | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> list[Tensor]:
    """Trains for an epoch or its first steps, and gives their losses.

    The order of the graphs is the same in every call.
    """
    optimizer = optimizer or torch.optim.Adam(module.parameters(), lr=1e-4)
    torch.manual_seed(0)
    losses = []
    for batch in islice(loader, steps):
        optimizer.zero_grad()
        loss = (module(*_arguments(batch)) - batch.y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def _arguments(batch: Any) -> tuple[Tensor, ...]:
    return batch.x, batch.edge_index, batch.edge_attr, batch.batch


def _use_cores(count: int) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    torch.set_num_threads(count)


def _run_through(loader: Iterable[Any]) -> None:
    for _ in loader:
        pass


def _medians(
    ways: Mapping[str, Callable[[], Any]],
    steps: int,
    rounds: int,
    clock: Callable[[], float],
) -> dict[str, float]:
    """Milliseconds of a step of each way, in rounds in which all take turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(WARM_UP + rounds):
        for name, run in ways.items():
            start = clock()
            run()
            times[name].append((clock() - start) / steps * 1e3)
    return {name: statistics.median(found[WARM_UP:]) for name, found in times.items()}


def _judged(target: float | None, reaches: Callable[[float], bool]) -> Row:
    if target is None:
        return {}
    return {"target": f"{target:g}", "met": "yes" if reaches(target) else "no"}


FIELDS = (
    "table", "graphs", "features", "cores", "layer", "pyg_ms", "workers_ms", "ours_ms",
    "ours_compiled_ms", "copy_ms", "pyg_loader_ms", "ours_loader_ms", "times_faster",
    "faster", "ratio", "target", "met", "check", "difference",
)  # fmt: skip
_SHOWN = {key for key in FIELDS if key.endswith(("_ms", "ratio", "faster"))}


def show(row: Row) -> None:
    """Prints a row."""
    cells = [f"{row['graphs']:>3} graphs, {row['features']} features"]
    cells += [f"{row['cores']} cores", row.get("layer", "")]
    if row["check"] == "FAILED":
        cells.append(f"FAILED {row.get('difference', '')}")
    for name in (key for key in FIELDS if row.get(key) and key in _SHOWN):
        cells.append(f"{name.removesuffix('_ms').replace('_', ' ')} {row[name]}")
    if "met" in row:
        missed = "" if row["met"] == "yes" else ", MISSED"
        cells.append(f"target {row['target']}{missed}")
    print("   ".join(filter(None, cells)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tables = ("loader", "epoch")
    parser.add_argument("--tables", nargs="+", choices=tables, default=[*tables])
    parser.add_argument("--graphs", nargs="+", type=int, help="of a batch")
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=[*LAYERS])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "small_batches.csv")
    given = parser.parse_args()
    asked: list[tuple[Any, ...]] = []
    if "loader" in given.tables:
        sizes = product((1, 2), (16, 64), given.graphs or (32, 128, 512))
        asked += [(measure_loader, *reversed(size)) for size in sizes]
    if "epoch" in given.tables:
        shapes = product(given.graphs or (32, 512), given.layers)
        asked += [(measure_epoch, *shape) for shape in shapes]
    # Compiled functions are kept by what calls them, not by what our ops do.
    os.environ.setdefault("TORCHINDUCTOR_AUTOGRAD_CACHE", "0")
    about = [*origin(torch.device("cpu"))]
    for measure, *arguments in asked:
        # A process of its own, which chooses its cores and has nothing compiled yet.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            row = pool.submit(measure, *arguments, given.rounds).result()
        show(row)
        add_row(given.out, row, [*FIELDS, *about])


if __name__ == "__main__":
    main()
