"""Loading at the size of ogbn-products, and sampling a large block model.

    python benchmarks/data_load.py [--folder FOLDER] [--output FILE]

Three measurements, each in a process of its own:

- second_load: a made-up graph of 2,449,029 nodes, 123,718,280 directed edges
  (61,859,140 both ways) and 100 features is kept processed; loading it should take
  under 2 s and take no private memory.
- first_load: the same at a tenth of the size, from a raw archive in OGB's layout; the
  peak of memory should stay under three times the processed size.
- csbm: a block model of a million nodes with mean degree 20, which should take under
  10 s on two cores.

Expect about three minutes, 3 GiB of disk and 5 GiB of memory.
"""

import argparse
import csv
import dataclasses
import gzip
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np

NODES, EDGES, FEATURES, CLASSES = 2_449_029, 61_859_140, 100, 47
FIRST_LOAD_SCALE = 0.1


def status(field: str) -> int:
    """A field of this process's status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


class Clock:
    """Time on the wall and on the processor since it was made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        return {
            "seconds": time.perf_counter() - self._wall,
            "cpu_seconds": time.process_time() - self._processor,
        }


def reset_peak() -> None:
    """Lets the peak of resident memory start anew."""
    Path("/proc/self/clear_refs").write_text("5")


def write_processed(root: Path) -> None:
    """Keeps a processed graph of the full size where `load` looks for it."""
    from tempergat.data.formats.graphs import make_graph
    from tempergat.data.processed import write_processed

    generator = np.random.default_rng(0)
    shape = (2, 2 * EDGES)
    part = generator.random(NODES)
    graph = make_graph(
        NODES,
        edge_index=generator.integers(NODES, size=shape, dtype=np.int32),
        x=generator.standard_normal((NODES, FEATURES), dtype=np.float32),
        y=generator.integers(CLASSES, size=NODES),
        train_mask=part < 0.08,
        val_mask=(part >= 0.08) & (part < 0.1),
        test_mask=part >= 0.1,
    )
    write_processed(root / "ogbn-products" / "processed", graph)


def second_load(root: Path) -> dict[str, float]:
    """Loads the kept graph, then touches it to show that it is all there."""
    from tempergat.data import load

    load("csbm")
    before = status("RssAnon")
    clock = Clock()
    dataset = load("ogbn-products", root)
    taken = clock.read()
    private = status("RssAnon") - before
    assert dataset.data.num_edges == 2 * EDGES
    assert int(dataset.data.edge_index[0, ::1000].max()) < NODES
    size = sum(p.stat().st_size for p in (root / "ogbn-products").rglob("*.npy"))
    return {
        **taken,
        "private_mib": private / 2**20,
        "processed_mib": size / 2**20,
    }


def write_raw(root: Path) -> int:
    """Writes an archive in OGB's layout; returns the number of nodes."""
    nodes, edges = int(NODES * FIRST_LOAD_SCALE), int(EDGES * FIRST_LOAD_SCALE)
    generator = np.random.default_rng(0)
    raw = root / "ogbn-products" / "raw"
    raw.mkdir(parents=True)
    with zipfile.ZipFile(raw / "products.zip", "w") as archive:

        def put(name: str, table: np.ndarray) -> None:
            form = "%d" if table.dtype.kind == "i" else "%.6f"
            line = ",".join([form] * table.shape[1]) + "\n"
            with (
                archive.open(f"products/{name}.csv.gz", "w", force_zip64=True) as file,
                gzip.open(file, "wt", compresslevel=1) as text,
            ):
                for start in range(0, len(table), 10_000):
                    block = table[start : start + 10_000]
                    text.write(line * len(block) % tuple(block.ravel().tolist()))

        put("raw/edge", generator.integers(nodes, size=(edges, 2)))
        put("raw/node-feat", generator.standard_normal((nodes, FEATURES)))
        put("raw/node-label", generator.integers(CLASSES, size=(nodes, 1)))
        put("raw/num-node-list", np.array([[nodes]]))
        put("raw/num-edge-list", np.array([[edges]]))
        order = generator.permutation(nodes)[:, None]
        for part, piece in zip(
            ("train", "valid", "test"),
            np.split(order, [nodes * 8 // 100, nodes // 10]),
            strict=True,
        ):
            put(f"split/sales_ranking/{part}", piece)
    return nodes


def first_load(root: Path, nodes: int) -> dict[str, float]:
    """Loads from the raw archive."""
    from tempergat.data import load
    from tempergat.data.catalog.entries import CATALOG
    from tempergat.data.named_graphs import open_entry

    load("csbm")
    entry = dataclasses.replace(
        CATALOG["ogbn-products"], num_nodes=nodes, num_edges=None, split_sizes=()
    )
    reset_peak()
    before = status("VmRSS")
    clock = Clock()
    open_entry(entry, root).choose()
    taken = clock.read()
    peak = status("VmHWM") - before
    size = sum(p.stat().st_size for p in (root / "ogbn-products").rglob("*.npy"))
    return {
        **taken,
        "peak_mib": peak / 2**20,
        "processed_mib": size / 2**20,
    }


def sample_csbm() -> dict[str, float]:
    """Samples the block model."""
    from tempergat.data import csbm

    csbm(n=1000)
    clock = Clock()
    dataset = csbm(n=1_000_000, a=30.0, b=10.0)
    return {**clock.read(), "mean_degree": dataset.data.num_edges / 1_000_000}


def measured_apart(stage: str, root: Path, nodes: int) -> dict[str, float]:
    """Runs one stage in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--stage", stage]
    command += ["--folder", str(root), "--nodes", str(nodes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def machine() -> dict[str, str]:
    """What the numbers depend on."""
    import torch

    names = [
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "cpu": f"{os.cpu_count()} x {names[0] if names else platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        # Of other work on the machine; above the number of cores, time on the wall
        # says little.
        "load_average": f"{os.getloadavg()[0]:.1f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to put the made-up graphs")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results/data_load.csv"
    )
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--nodes", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    stages = {
        "second_load": lambda: second_load(arguments.folder),
        "first_load": lambda: first_load(arguments.folder, arguments.nodes),
        "csbm": sample_csbm,
    }
    if arguments.stage:
        print(json.dumps(stages[arguments.stage]()))
        return
    # A mirror could hold the real graph.
    os.environ.pop("TEMPERGAT_MIRROR", None)
    results = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        write_processed(Path(name))
        results["second_load"] = measured_apart("second_load", Path(name), 0)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        nodes = write_raw(Path(name))
        results["first_load"] = measured_apart("first_load", Path(name), nodes)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        results["csbm"] = measured_apart("csbm", Path(name), 0)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    with open(arguments.output, "w", newline="") as stream:
        writer = csv.writer(stream)
        here = machine()
        writer.writerow(["stage", "quantity", "value", *here])
        for stage, found in results.items():
            for quantity, value in found.items():
                row = [stage, quantity, f"{value:.2f}", *here.values()]
                writer.writerow(row)
                print(f"{stage:12} {quantity:14} {value:10.2f}")


if __name__ == "__main__":
    main()
