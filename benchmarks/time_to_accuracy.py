"""Full-batch and sampled training of one model, by the time to a given accuracy.

    python -m benchmarks.time_to_accuracy --out DIR

The graph has the size of ogbn-products. Its labels are planted twice: the features are
those of the class with much noise, and half of the edges begin at a node of the
target's class. Both ways train `temp_gated` with the settings of the paper and are
scored in the same way, by the whole graph without dropout; scoring is not part of the
times. Writes DIR/time_to_accuracy.csv: the scores as training goes on.
"""

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.graphs import power_law_topology
from benchmarks.sampling import SETTINGS, seeds_of
from tempergat.nn import gate_penalty
from tempergat.ops import Graph, fold_in
from tempergat.sampling import NodeFeatures, Topology
from tempergat.training.optimizer import make_optimizer
from tempergat.training.sampled import (
    SampledGroup,
    SampledTask,
    SampledTraining,
    captured,
)
from tempergat.training.settings.config import RunConfig
from tempergat.training.settings.recipes import load_recipe

FIELDS = ("way", "learning_rate", "steps", "train_s", "val_accuracy", "device")
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9)
# How much of a feature is the class's own, in standard deviations of the noise, and the
# share of edges that begin at a node of the target's class.
SIGNAL = 0.15
HOMOPHILY = 0.5
SCORED = 100_000


def planted_task(graph: str) -> SampledTask:
    """A graph whose classes show in features and in edges."""
    setting, device = SETTINGS[graph], torch.device("cuda")
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
    order = seeds_of(num_nodes, setting.num_train + SCORED, "cuda")
    train, scored = order[: setting.num_train], order[setting.num_train :]
    nodes = {"train": train.cpu(), "val": scored.cpu(), "test": scored.cpu()}
    return SampledTask(
        features=NodeFeatures(x),
        topology=Topology(topology.pointer, source, None, num_nodes),
        edge_index=torch.empty(2, 0, dtype=torch.int64),
        nodes=nodes,
        labels={split: y[found.to(device)] for split, found in nodes.items()},
        in_channels=setting.in_channels,
        num_classes=classes,
        metric="accuracy",
        class_weights=None,
        device=device,
    )


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
    """Scores over the time of training, without the time of scoring."""

    def __init__(self, way: str, config: RunConfig, score: Callable[[], float]) -> None:
        self.way, self.rate, self.score = way, config.learning_rate, score
        self.rows: list[dict[str, Any]] = []
        self.seconds = 0.0
        torch.cuda.synchronize()
        self.since = time.perf_counter()

    def add(self, steps: int) -> float:
        """Scores the model now."""
        torch.cuda.synchronize()
        self.seconds += time.perf_counter() - self.since
        accuracy = self.score()
        row = (self.way, self.rate, steps, round(self.seconds, 3), round(accuracy, 4))
        name = torch.cuda.get_device_name()
        self.rows.append(dict(zip(FIELDS, (*row, name), strict=True)))
        torch.cuda.synchronize()
        self.since = time.perf_counter()
        return accuracy

    def print_levels(self) -> None:
        """When each level was reached first."""
        reached = {
            level: next(
                (r["train_s"] for r in self.rows if r["val_accuracy"] >= level), None
            )
            for level in LEVELS
        }
        best = max(r["val_accuracy"] for r in self.rows)
        print(f"{self.way}, lr {self.rate}: best {best}, seconds to {reached}")
        print("  ", [(r["steps"], r["train_s"], r["val_accuracy"]) for r in self.rows])


def scorer(model: Any, task: SampledTask, graph: Graph) -> Callable[[], float]:
    """Returns a function for the accuracy of a model on the scored nodes."""
    nodes, labels = task.nodes["val"].to(task.device), task.labels["val"]
    everything = torch.arange(task.num_nodes, device=task.device)
    x = task.features.rows(everything)

    def score() -> float:
        model.eval()
        with torch.no_grad():
            predicted = model(x, graph)[nodes].argmax(1)
        return float((predicted == labels).double().mean())

    return score


def train_full(
    task: SampledTask, graph: Graph, config: RunConfig, seconds: float
) -> Curve:
    """Every step on the whole graph."""
    group = SampledGroup(task, config, 0)
    model, device = group.model, task.device
    optimizer = make_optimizer(group.parameters, config)
    x = task.features.rows(torch.arange(task.num_nodes, device=device))
    nodes, labels = task.nodes["train"].to(device), task.labels["train"]
    curve = Curve("full batch", config, scorer(model, task, graph))
    step = 0
    while curve.seconds < seconds:
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


def train_sampled(
    task: SampledTask, graph: Graph, config: RunConfig, seconds: float
) -> Curve:
    """Steps on sampled batches, as a CUDA graph."""
    # The host looks, and scores, more often.
    captured._UNSEEN_STEPS = 16
    training = SampledTraining(SampledGroup(task, config, 0), config)
    curve = Curve("sampled", config, scorer(training.group.model, task, graph))
    before = 0

    def after_step() -> None:
        nonlocal before
        if training.global_step >= before + 8:
            before = training.global_step
            curve.add(before)

    training.on_step = after_step
    while curve.seconds < seconds and training.epochs_done < config.epochs:
        training.train_epoch()
        training.forget_steps()
        training.epochs_done += 1
    return curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", choices=list(SETTINGS), default="products")
    parser.add_argument("--full-s", type=float, default=15.0)
    parser.add_argument("--sampled-s", type=float, default=5.0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    given = parser.parse_args()
    task = planted_task(given.graph)
    topology = task.topology
    edges = torch.stack([topology.source, targets_of(topology)])
    graph = Graph(edges, task.num_nodes, self_loops=True, check=False)
    del edges
    config = load_recipe("paper/ogbn-products").config_for("temp_gated")
    fanout = tuple(SETTINGS[given.graph].fanout)
    config = config.model_copy(
        update={"batch_size": 1024, "fanout": fanout, "epochs": 20}
    )
    faster = config.model_copy(update={"learning_rate": 0.01})
    curves = [train_sampled(task, graph, config, given.sampled_s)]
    curves[-1].print_levels()
    for settings in (config, faster):
        curves.append(train_full(task, graph, settings, given.full_s))
        curves[-1].print_levels()
    path = given.out / "time_to_accuracy.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(row for curve in curves for row in curve.rows)


if __name__ == "__main__":
    main()
