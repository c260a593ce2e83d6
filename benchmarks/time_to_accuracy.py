"""Full-batch and sampled training of one model, by the time to a given accuracy.

    python -m benchmarks.time_to_accuracy --out DIR

The graph has the size of ogbn-products. Its classes show twice: a node's features are
those of its class with much noise, and a part of its edges begin at nodes of its class.
A tenth of the labels are wrong, so that no model is right everywhere. Both ways train
`temp_gated` with the settings of the paper and are scored in the same way, by the whole
graph without dropout; scoring is not part of the times.

Writes DIR/time_to_accuracy.csv, the scores as training goes on, after every way that is
finished, and prints when each way first reached parts of the best accuracy of all.
"""

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from benchmarks.graphs import power_law_topology
from benchmarks.origin import machine
from benchmarks.sampling import SETTINGS, loop_on, seeds_of
from tempergat.data import Target
from tempergat.nn import gate_penalty
from tempergat.ops import Graph, fold_in
from tempergat.sampling import NodeFeatures, Topology
from tempergat.training.devices import capture
from tempergat.training.examples import Examples
from tempergat.training.graphs.sampled import SampledGraph
from tempergat.training.loop import Loop
from tempergat.training.metrics import METRICS
from tempergat.training.settings.config import RunConfig
from tempergat.training.settings.recipes import load_recipe
from tempergat.training.tasks import NodeClasses

FIELDS = (
    "way", "learning_rate", "steps", "train_s", "accuracy", "peak_gib", "graph",
    "machine", "torch",
)  # fmt: skip
# Parts of the best accuracy that any way reached.
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99)
# How much of a feature is the class's own, in standard deviations of the noise; the
# share of edges that begin at a node of the target's class; the share of wrong labels.
SIGNAL = 0.15
HOMOPHILY = 0.5
WRONG_LABELS = 0.1
SCORED = 50_000


def planted_task(graph: str, device: torch.device) -> tuple[SampledGraph, NodeClasses]:
    """A graph whose classes show in features and in edges."""
    setting = SETTINGS[graph]
    topology = power_law_topology(graph, device)
    num_nodes, classes = topology.num_dst, setting.classes
    generator = torch.Generator(device).manual_seed(2)
    y = torch.randint(classes, (num_nodes,), device=device, generator=generator)
    source = _planted_sources(topology, y, classes, generator)
    centres = torch.randn(
        classes, setting.in_channels, device=device, generator=generator
    )
    x = torch.randn(num_nodes, setting.in_channels, device=device, generator=generator)
    x += SIGNAL * centres[y]
    draw = torch.rand(num_nodes, device=device, generator=generator)
    others = torch.randint(classes, (num_nodes,), device=device, generator=generator)
    y = torch.where(draw < WRONG_LABELS, others, y)
    order = seeds_of(num_nodes, setting.num_train + SCORED, device.type)
    train, scored = order[: setting.num_train], order[setting.num_train :]
    nodes = {"train": train.cpu(), "val": scored.cpu(), "test": scored.cpu()}
    planted = SampledGraph(
        data=Data(x=NodeFeatures(x), num_nodes=num_nodes),
        topology=Topology(topology.pointer, source, None, num_nodes),
        edge_index=torch.empty(2, 0, dtype=torch.int64),
        in_channels=setting.in_channels,
        device=device,
    )
    task = NodeClasses(
        examples=Examples(
            nodes, {split: y[found.to(device)] for split, found in nodes.items()}
        ),
        predicted=Target(classes),
        metric=METRICS["accuracy"],
        class_weights=None,
        device=device,
    )
    return planted, task


def targets_of(topology: Topology) -> Tensor:
    """The target of every edge."""
    rows = torch.arange(topology.num_dst, device=topology.device, dtype=torch.int32)
    return rows.repeat_interleave(
        topology.pointer.diff(), output_size=topology.num_edges
    )


def _planted_sources(
    topology: Topology, y: Tensor, classes: int, generator: torch.Generator
) -> Tensor:
    """Sources, of which a share are random nodes of the target's class."""
    by_class = torch.argsort(y)
    counts = torch.bincount(y, minlength=classes)
    first = counts.cumsum(0) - counts
    source = topology.source.clone()
    # In parts: no number of every edge is kept as int64.
    targets = targets_of(topology)
    for begin in range(0, source.size(0), 1 << 25):
        part = slice(begin, begin + (1 << 25))
        kind = y[targets[part].long()]
        draw = torch.rand(2, kind.size(0), device=y.device, generator=generator)
        place = first[kind] + (draw[0] * counts[kind]).long()
        same = by_class[place.clamp(max=y.size(0) - 1)].int()
        source[part] = torch.where(draw[1] < HOMOPHILY, same, source[part])
    return source


class Curve:
    """Scores over the time of training, without the time of scoring.

    Args:
        way: How the model is trained.
        config: With which settings.
        graph: The name of the graph.
        device: Where.
        score: Returns the accuracy at the present weights.
    """

    def __init__(
        self,
        way: str,
        config: RunConfig,
        graph: str,
        device: torch.device,
        score: Callable[[], float],
    ) -> None:
        self.rows: list[dict[str, Any]] = []
        self.seconds = 0.0
        self._facts = {
            "way": way,
            "learning_rate": config.learning_rate,
            "graph": graph,
            "machine": machine(device),
            "torch": torch.__version__,
        }
        self._is_cuda, self._score = device.type == "cuda", score
        self._peak = 0.0
        if self._is_cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        self._since = self._now()

    def add(self, steps: int) -> None:
        """Scores the model now."""
        self.seconds += self._now() - self._since
        if self._is_cuda:
            peak = torch.cuda.max_memory_allocated() / 2**30
            self._peak = max(self._peak, peak)
        values = {
            "steps": steps,
            "train_s": round(self.seconds, 3),
            "accuracy": round(self._score(), 4),
            "peak_gib": round(self._peak, 1),
        }
        self.rows.append({**self._facts, **values})
        if self._is_cuda:
            # Scoring takes other memory than training.
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        self._since = self._now()

    @property
    def is_finished(self) -> bool:
        """Whether the model is nearly as good as one can be."""
        # A wrong label may be the right one by chance; that is left out here.
        possible = 1.0 - WRONG_LABELS
        return bool(self.rows) and self.best >= 0.995 * possible

    @property
    def best(self) -> float:
        """The best accuracy so far."""
        return max(float(row["accuracy"]) for row in self.rows)

    def describe(self, best: float) -> str:
        """When each part of an accuracy was reached first."""
        reached = []
        for level in LEVELS:
            row = next((r for r in self.rows if r["accuracy"] >= level * best), None)
            if row is None:
                reached.append(f"{level * best:.3f} not reached")
            else:
                reached.append(
                    f"{level * best:.3f} in {row['train_s']} s, {row['steps']} steps"
                )
        facts, last = self._facts, self.rows[-1]
        return (
            f"{facts['way']}, learning rate {facts['learning_rate']}: best "
            f"{self.best}, {last['train_s']} s for {last['steps']} steps, "
            f"{last['peak_gib']} GiB; " + "; ".join(reached)
        )

    def _now(self) -> float:
        if self._is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter()


def scorer(loop: Loop, graph: Graph) -> Callable[[], float]:
    """Returns a function for the accuracy of a model on the scored nodes."""
    model, task, source = loop.runs.model, loop.task, loop.batches.graph
    nodes, labels = (
        task.examples.numbers["val"].to(task.device),
        task.examples.targets["val"],
    )
    x = source.features.rows(torch.arange(source.num_nodes, device=task.device))

    def score() -> float:
        was_training = model.training
        model.eval()
        with torch.no_grad():
            predicted = model(x, graph)[nodes].argmax(1)
        model.train(was_training)
        return float((predicted == labels).double().mean())

    return score


def train_full(loop: Loop, name: str, graph: Graph, seconds: float) -> Curve:
    """Every step on the whole graph."""
    config, task, source = loop.config, loop.task, loop.batches.graph
    model, device, optimizer = loop.runs.model, task.device, loop.optimizer
    x = source.features.rows(torch.arange(source.num_nodes, device=device))
    nodes, labels = (
        task.examples.numbers["train"].to(device),
        task.examples.targets["train"],
    )
    curve = Curve("full batch", config, name, device, scorer(loop, graph))
    step = 0
    while curve.seconds < seconds and not curve.is_finished:
        for _ in range(5):
            model.train()
            seed = fold_in(torch.tensor(0, device=device), step)
            optimizer.zero_grad()
            out = model(x, graph, dropout_seed=seed)[nodes]
            loss = torch.nn.functional.cross_entropy(out, labels)
            loss = loss + config.gate_penalty * gate_penalty(model)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            step += 1
        curve.add(step)
    return curve


def train_sampled(loop: Loop, name: str, graph: Graph, seconds: float) -> Curve:
    """Steps on sampled batches; on a GPU as a CUDA graph."""
    # The host looks, and scores, more often.
    capture._UNSEEN_STEPS = 16
    score = scorer(loop, graph)
    curve = Curve("sampled", loop.config, name, loop.device, score)
    steps = 0

    def after_step() -> None:
        nonlocal steps
        # Often at first, then after every tenth part of the steps so far.
        if loop.global_step >= steps + max(8, steps // 10):
            steps = loop.global_step
            curve.add(steps)

    loop.on_step = after_step
    while curve.seconds < seconds and not curve.is_finished:
        loop.train_epoch()
        loop.forget_steps()
        loop.epochs_done += 1
    return curve


def main() -> None:
    """Trains both ways, each for a given time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", choices=list(SETTINGS), default="products")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--full-s", type=float, default=30.0)
    parser.add_argument("--sampled-s", type=float, default=6.0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    given = parser.parse_args()
    device = torch.device(given.device)
    source, task = planted_task(given.graph, device)
    topology = source.topology
    edges = torch.stack([topology.source, targets_of(topology)])
    graph = Graph(edges, source.num_nodes, self_loops=True, check=False)
    del edges
    config = load_recipe("paper/ogbn-products").config_for("temp_gated")
    fanout = tuple(SETTINGS[given.graph].fanout)
    config = config.with_changes(batch_size=1024, fanout=fanout, epochs=20)
    faster = config.with_changes(learning_rate=0.01)
    curves: list[Curve] = []
    for train, settings, seconds in (
        (train_sampled, config, given.sampled_s),
        (train_sampled, faster, given.sampled_s),
        (train_full, config, given.full_s),
        (train_full, faster, given.full_s),
    ):
        loop = loop_on(source, task, settings)
        curves.append(train(loop, given.graph, graph, seconds))
        print(curves[-1].describe(curves[-1].best), flush=True)
        _write(given.out / "time_to_accuracy.csv", curves)
    best = max(curve.best for curve in curves)
    print("compared with the best of all:")
    for curve in curves:
        print(curve.describe(best))


def _write(path: Path, curves: list[Curve]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(row for curve in curves for row in curve.rows)


if __name__ == "__main__":
    main()
