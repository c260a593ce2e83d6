"""How fast batches are sampled, and how long an epoch of training on them takes.

    python -m benchmarks.sampling rates --graph products --device cuda --out DIR
    python -m benchmarks.sampling epochs --graph products --out DIR
    python -m benchmarks.sampling scores --graph products --out DIR

`rates` first compares batches with the reference, bit for bit, and gives no rate if one
differs. A rate counts sampled edges over the time from the seeds to the relabelled
batch that is sorted by target; features are not gathered. `epochs` trains `temp_gated`
on a generated graph on a GPU. `scores` computes the exact scores of all nodes layer by
layer, in chunks of several sizes, and compares them with those of a pass over the whole
graph. All add rows to DIR/sampling_<device>.csv.
"""

import argparse
import csv
import datetime
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from benchmarks.graphs import power_law_topology
from tempergat.data import Target
from tempergat.ops import Graph
from tempergat.sampling import (
    Key,
    LayerGraphs,
    NodeFeatures,
    Topology,
    reference,
    sample,
)
from tempergat.sampling.loader import prefetched
from tempergat.sampling.reference import SampledHops
from tempergat.training.examples import Examples
from tempergat.training.graphs.layerwise import infer_layerwise
from tempergat.training.graphs.sampled import SampledGraph
from tempergat.training.graphs.sampled_batches import SampledBatches
from tempergat.training.loop import Loop
from tempergat.training.metrics import METRICS
from tempergat.training.runs.models import single_model
from tempergat.training.runs.modules import ModuleRuns
from tempergat.training.settings.config import RunConfig
from tempergat.training.settings.recipes import load_recipe
from tempergat.training.tasks import NodeClasses

FIELDS = (
    "what", "graph", "device", "edges_per_batch", "nodes_per_batch", "ms_per_batch",
    "million_edges_per_s", "epoch_s", "target", "note", "date", "machine", "torch",
)  # fmt: skip
BATCH = 1024


class Setting(NamedTuple):
    """What is trained on a graph: fanout, width of the layers, nodes and features.

    The targets are seconds of an epoch, in float32 and with TF32.
    """

    fanout: list[int]
    heads: int
    channels: int
    num_train: int
    in_channels: int
    classes: int
    targets_s: tuple[float, float]


SETTINGS = {
    "products": Setting([15, 10, 5], 4, 64, 196_615, 100, 47, (1.45, 1.05)),
    "reddit": Setting([25, 10], 4, 32, 153_431, 602, 41, (0.36, 0.28)),
    # For trying this out.
    "arxiv": Setting([15, 10, 5], 4, 64, 90_941, 128, 40, (0.0, 0.0)),
}
# Million edges per second.
TARGET_RATES = {"cuda": 1000.0, "cpu": 10.0}


class Report:
    """Rows of the table, printed and written as they come."""

    def __init__(self, folder: Path, device: str) -> None:
        self.path = folder / f"sampling_{device}.csv"
        machine = f"{torch.get_num_threads()} CPU threads"
        if device == "cuda":
            machine = torch.cuda.get_device_name()
        self.facts = {
            "device": device,
            "date": datetime.date.today().isoformat(),
            "machine": machine,
            "torch": torch.__version__,
        }

    def add(self, what: str, **values: Any) -> None:
        row = {"what": what, **self.facts, **values}
        print(", ".join(f"{k} {v}" for k, v in {"what": what, **values}.items()))
        sys.stdout.flush()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            if new:
                writer.writeheader()
            writer.writerow(row)


def wait(device: str) -> None:
    """Waits until the device has done what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def timed(call: Callable[[int], Any], device: str, repeats: int) -> float:
    """Milliseconds per call, the mean of many calls, after two others.

    On a GPU they are made in a row; on the CPU in as many threads as torch has, like
    the batches that a sampler makes ahead.
    """
    for step in range(2):
        call(step)
    wait(device)
    threads = torch.get_num_threads()
    ahead = 2 * threads if device == "cpu" else 0
    start = time.perf_counter()
    for _ in prefetched(call, range(2, repeats + 2), ahead, threads):
        pass
    wait(device)
    return (time.perf_counter() - start) / repeats * 1000


def seeds_of(num_nodes: int, count: int, device: str) -> Tensor:
    """The training nodes: a random part of all."""
    generator = torch.Generator(device).manual_seed(1)
    return torch.randperm(num_nodes, device=device, generator=generator)[:count]


def equals_reference(
    topology: Topology, seeds: Tensor, fanout: list[int], replace: bool
) -> bool:
    """Whether a batch is the reference's, bit for bit."""
    graph = [topology.relation()], [topology.num_src], 0
    arguments = *graph, seeds, [fanout], Key(3, 1, 4), replace
    ours, theirs = sample(*arguments), reference.sample(*arguments)
    assert ours.pointer is not None
    assert theirs.pointer is not None
    counts = ours.nodes_per_hop, ours.edges_per_hop
    return counts == (theirs.nodes_per_hop, theirs.edges_per_hop) and all(
        torch.equal(*pair)
        for pair in (
            (ours.pointer, theirs.pointer),
            (ours.n_id[0], theirs.n_id[0]),
            (ours.source[0], theirs.source[0]),
            (ours.target[0], theirs.target[0]),
            (ours.slot[0], theirs.slot[0]),
        )
    )


def measure_rates(graph: str, device: str, report: Report, repeats: int) -> None:
    """Checks a few batches, then measures how fast they are sampled."""
    fanout = SETTINGS[graph].fanout
    topology = power_law_topology(graph, device)
    nodes = seeds_of(topology.num_dst, SETTINGS[graph].num_train, device)
    batches = [
        nodes[first : first + BATCH] for first in range(0, BATCH * (repeats + 2), BATCH)
    ]
    for replace in (False, True):
        if not equals_reference(topology, batches[0], fanout, replace):
            note = f"DIFFERS, replace={replace}"
            report.add("sampling", graph=graph, note=note)
            return

    def draw(step: int) -> SampledHops:
        graph = [topology.relation()], [topology.num_src], 0
        return sample(*graph, batches[step], [fanout], Key(0, 0, step), False)

    def draw_for_layers(step: int) -> Any:
        graphs = LayerGraphs.of_hops(draw(step), training=True)
        return graphs.for_layers(len(fanout), self_loops=True)

    rows: list[tuple[str, Callable[[int], Any]]] = [
        ("sampling", draw),
        ("sampling and the layers' graphs", draw_for_layers),
    ]
    for what, call in rows:
        some = [draw(step) for step in range(2, min(10, len(batches)))]
        edges = statistics.mean(sum(hops.edges_per_hop[0]) for hops in some)
        note = f"fanout {fanout}, equal to the reference"
        used = time.process_time()
        ms = timed(call, device, repeats)
        if device == "cpu":
            # Other programs may have taken their part of the cores.
            used = (time.process_time() - used) / (repeats + 2)
            note += f", {edges / used / 1e6:.1f} million edges per second of a core"
        report.add(
            what,
            graph=graph,
            edges_per_batch=round(edges),
            nodes_per_batch=round(statistics.mean(h.n_id[0].size(0) for h in some)),
            ms_per_batch=round(ms, 3),
            million_edges_per_s=round(edges / ms / 1000, 1),
            target=TARGET_RATES[device],
            note=note,
        )


def task_of(graph: str, device: str = "cuda") -> tuple[SampledGraph, NodeClasses]:
    """A generated graph with random features and labels."""
    setting = SETTINGS[graph]
    topology = power_law_topology(graph, device)
    x = torch.randn(topology.num_dst, setting.in_channels, device=device)
    nodes = seeds_of(topology.num_dst, setting.num_train, device).cpu()
    labels = torch.randint(setting.classes, (setting.num_train,), device=device)
    source = SampledGraph(
        data=Data(x=NodeFeatures(x), num_nodes=topology.num_dst),
        topology=topology,
        edge_index=torch.empty(2, 0, dtype=torch.int64),
        in_channels=setting.in_channels,
        device=torch.device(device),
    )
    task = NodeClasses(
        examples=Examples(
            dict.fromkeys(("train", "val", "test"), nodes),
            dict.fromkeys(("train", "val", "test"), labels),
        ),
        predicted=Target(setting.classes),
        metric=METRICS["accuracy"],
        class_weights=None,
        device=torch.device(device),
    )
    return source, task


def loop_on(source: SampledGraph, task: NodeClasses, config: RunConfig) -> Loop:
    """The training of one run on samples, before its first step."""
    model = single_model(config, source.in_channels, task.predicted.width, seed=0)
    runs = ModuleRuns(task, config, [0], [model])
    return Loop(runs, SampledBatches(source, config, task, seed=0), config)


def training_of(
    source: SampledGraph, task: NodeClasses, graph: str, recorded: bool
) -> Loop:
    """A run of `temp_gated` before its first step."""
    setting = SETTINGS[graph]
    recipe = "reddit" if graph == "reddit" else "ogbn-products"
    settings = load_recipe(f"paper/{recipe}").config_for("temp_gated")
    config = settings.model_copy(
        update={"batch_size": BATCH, "fanout": tuple(setting.fanout), "epochs": 10}
    )
    training = loop_on(source, task, config)
    if not recorded:
        training.captured = None
    return training


def one_epoch(training: Loop) -> tuple[float, float]:
    """Seconds of the steps of the next epoch, without its scores, and its loss."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    training.train_epoch()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    loss = float(training.epoch_loss())
    training.forget_steps()
    training.epochs_done += 1
    return seconds, loss


def measure_epochs(graph: str, report: Report, epochs: int, precision: str) -> None:
    """Epochs of plain steps and of a CUDA graph; the losses of the first must agree.

    Args:
        graph: One of `SETTINGS`.
        report: Gets the rows.
        epochs: How many are measured after the first.
        precision: torch's precision of float32 matrix products.
    """
    torch.set_float32_matmul_precision(precision)
    setting = SETTINGS[graph]
    source, task = task_of(graph)
    losses, seconds = {}, {}
    for recorded in (False, True):
        training = training_of(source, task, graph, recorded)
        torch.cuda.reset_peak_memory_stats()
        first, losses[recorded] = one_epoch(training)
        times = [one_epoch(training)[0] for _ in range(epochs)]
        seconds[recorded] = statistics.median(times)
        note = f"{precision} precision, first epoch {first:.2f} s, "
        note += f"loss {losses[recorded]:.6f}"
        if recorded and training.captured is not None:
            note += f", {training.captured.misfits} batches did not fit"
        report.add(
            "epoch, CUDA graph" if recorded else "epoch, plain steps",
            graph=graph,
            ms_per_batch=round(seconds[recorded] / len(training.batches) * 1000, 3),
            epoch_s=round(seconds[recorded], 3),
            target=setting.targets_s[precision == "high"],
            note=f"{note}, {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB",
        )
        if recorded:
            measure_share(training, graph, report, seconds[True])
    difference = abs(losses[True] - losses[False]) / losses[False]
    verdict = "agree" if difference < 1e-3 else "DIFFER"
    report.add("losses", graph=graph, note=f"{verdict} up to {difference:.1e}")


def measure_share(training: Loop, graph: str, report: Report, epoch_s: float) -> None:
    """How much of an epoch of the CUDA graph is sampling, with the layers' graphs."""
    assert training.captured is not None
    step = training.captured._step
    assert step is not None
    step.begin_epoch()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        step.sample()
    ms = timed(lambda _: recorded.replay(), "cuda", 50)
    steps = len(training.batches)
    report.add(
        "sampling in the CUDA graph",
        graph=graph,
        ms_per_batch=round(ms, 3),
        epoch_s=round(ms * steps / 1000, 3),
        target="below 25 %",
        note=f"{ms * steps / 10 / epoch_s:.0f} % of an epoch",
    )


def measure_scores(graph: str, device: str, report: Report) -> None:
    """Exact scores of all nodes: time, memory and the difference from a whole pass."""
    source, task = task_of(graph, device)
    model = training_of(source, task, graph, recorded=False).runs.model.eval()
    topology = source.topology
    for chunk, keep_on in ((2**14, device), (2**16, device), (2**16, "cpu")):
        found, seconds, peak = _measured(
            lambda chunk=chunk, keep_on=keep_on: infer_layerwise(
                model, source.features, topology, chunk=chunk, keep_on=keep_on
            ),
            device,
        )
        report.add(
            "exact scores of all nodes",
            graph=graph,
            epoch_s=round(seconds, 3),
            note=f"chunks of {chunk:,} targets, layers kept on {keep_on}, "
            f"{peak:.1f} GiB beside graph and features",
        )
    rows = torch.arange(topology.num_dst, device=device)
    target = rows.repeat_interleave(topology.pointer.diff())
    edges = torch.stack([topology.source.long(), target])
    whole = Graph(edges, topology.num_dst, self_loops=True, check=False)
    del edges, target
    x = source.features.rows(rows)
    expected, seconds, peak = _measured(
        lambda: torch.no_grad()(model)(x, whole), device
    )
    difference = float((found.to(device) - expected).abs().max() / expected.std())
    report.add(
        "a pass over the whole graph",
        graph=graph,
        epoch_s=round(seconds, 3),
        note=f"{peak:.1f} GiB beside graph and features; scores layer by layer differ "
        f"by at most {difference:.1e} of their standard deviation",
    )


def _measured(call: Callable[[], Tensor], device: str) -> tuple[Tensor, float, float]:
    """The result of the second call, its seconds, and GiB beyond what was in use."""
    before = 0
    call()
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    wait(device)
    start = time.perf_counter()
    found = call()
    wait(device)
    seconds = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated() - before if device == "cuda" else 0
    return found, seconds, peak / 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["rates", "epochs", "scores"])
    parser.add_argument("--graph", choices=list(SETTINGS), default="products")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--precision", choices=["highest", "high"], default="highest")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    given = parser.parse_args()
    report = Report(given.out, given.device)
    if given.what == "rates":
        measure_rates(given.graph, given.device, report, given.repeats)
    elif given.what == "scores":
        measure_scores(given.graph, given.device, report)
    else:
        measure_epochs(given.graph, report, given.epochs, given.precision)


if __name__ == "__main__":
    main()
