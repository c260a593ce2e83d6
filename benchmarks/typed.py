"""Time and memory of sampled training on graphs like the paper's five typed datasets.

    python -m benchmarks.typed --out DIR --seconds 100

Random graphs are generated with each dataset's node types, edge types and counts, and
trained on with the settings of its recipe. The node and edge counts of ogbn-mag are
exact for every type. Those of pokec and the two OAG graphs are exact in total and by
relation within one type or across types where they are published; the rest is divided
evenly. Random edges reach more different nodes than real ones, so that batches are
larger than those of the real graphs, and time and memory with them.

Before anything is timed, the scores of batches with all neighbours are compared with
those of the whole graph. Each dataset is measured with the paper's hidden width as that
of all heads together and as that of each head; where a batch does not fit, again with
half of it. Writes DIR/typed.csv.
"""

import argparse
import csv
import datetime
import time
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import torch
from torch_geometric.data import HeteroData

from benchmarks.origin import machine
from tempergat.data import Dataset, Target
from tempergat.ops import Graph
from tempergat.training import RunConfig, load_recipe
from tempergat.training.graphs.inputs import typed_inputs, union_edges
from tempergat.training.groups import make_loop

FIELDS = (
    "dataset", "method", "hidden_channels", "batch_size", "nodes", "edges",
    "nodes_per_batch", "edges_per_batch", "sample_ms", "step_ms",
    "steps_per_epoch", "epoch_s", "peak_gib", "note", "date", "machine", "torch",
)  # fmt: skip
WARM_UP_STEPS, STEPS = 3, 6
CLUBS = 15
# What the paper calls the hidden width: of all heads together, or of each.
WIDTHS = {
    "ogbn-mag": 512,
    "mag-year": 512,
    "pokec": 256,
    "oag-cs": 256,
    "oag-chem": 256,
}


@dataclass(frozen=True)
class Shape:
    """A typed dataset: nodes and features by type, edges by relation, and the target.

    A relation within one type is symmetric, and any other gets a reverse type.
    """

    target: str
    nodes: dict[str, int]
    features: dict[str, int]
    edges: dict[tuple[str, str, str], int]
    classes: int
    num_train: int


MAG = Shape(
    "paper",
    {"author": 1_134_649, "field": 59_965, "institution": 8_740, "paper": 736_389},
    {"paper": 128},
    {
        ("author", "affiliated_with", "institution"): 1_043_998,
        ("author", "writes", "paper"): 7_145_660,
        ("paper", "cites", "paper"): 10_792_672,
        ("paper", "has_topic", "field"): 7_505_078,
    },
    349,
    629_571,
)
POKEC = Shape(
    "user",
    {"user": 1_632_803, **{f"club_{n}": 99_174 // CLUBS for n in range(CLUBS)}},
    {"user": 66},
    {
        ("user", "has_friend", "user"): 44_603_928,
        **{("user", "lists", f"club_{n}"): 3_585_454 // CLUBS for n in range(CLUBS)},
    },
    2,
    816_401,
)


def oag(nodes: int, edges: int, classes: int) -> Shape:
    """A subset of the Open Academic Graph with these totals."""
    shares = {"paper": 0.50, "author": 0.45, "field": 0.04, "affiliation": 0.01}
    relations = {
        ("paper", "cites", "paper"): 0.20,
        ("field", "in", "field"): 0.02,
        **{("author", f"writes_{n}", "paper"): 0.035 for n in range(3)},
        **{("paper", f"in_level_{n}", "field"): 0.04 for n in range(6)},
        ("author", "in", "affiliation"): 0.045,
    }
    counts = {name: int(share * nodes) for name, share in shares.items()}
    return Shape(
        "paper",
        counts,
        dict.fromkeys(counts, 768),
        {kind: int(share * edges) for kind, share in relations.items()},
        classes,
        int(0.7 * counts["paper"]),
    )


SHAPES = {
    "ogbn-mag": MAG,
    "mag-year": replace(MAG, classes=5, num_train=MAG.nodes["paper"] // 2),
    "pokec": POKEC,
    "oag-cs": oag(1_112_691, 27_537_448, 3_514),
    "oag-chem": oag(1_918_881, 38_098_014, 2_985),
}


def generate(name: str, shape: Shape, scale: float) -> Dataset:
    """A random graph of a dataset's shape, on the CPU."""
    generator = torch.Generator().manual_seed(0)
    data = HeteroData()
    counts = {kind: max(50, int(n * scale)) for kind, n in shape.nodes.items()}
    for kind, count in counts.items():
        data[kind].num_nodes = count
        if kind in shape.features:
            rows = torch.randn(4096, shape.features[kind], generator=generator)
            # The same rows again and again, which is quick.
            data[kind].x = rows[torch.arange(count) % rows.size(0)]
    for (source, relation, end), number in shape.edges.items():
        count = max(100, int(number * scale))
        count = count // 2 if source == end else count
        ends = torch.stack(
            [
                torch.randint(counts[kind], (count,), generator=generator)
                for kind in (source, end)
            ]
        )
        if source == end:
            ends = torch.cat([ends, ends.flip(0)], dim=1)
        else:
            data[end, f"rev_{relation}", source].edge_index = ends.flip(0)
        data[source, relation, end].edge_index = ends
    store, papers = data[shape.target], counts[shape.target]
    store.y = torch.randint(shape.classes, (papers,), generator=generator)
    place = torch.arange(papers)
    train = int(shape.num_train * scale)
    store.train_mask = place < train
    store.val_mask = (place >= train) & (place < (train + papers) // 2)
    store.test_mask = place >= (train + papers) // 2
    return Dataset(
        name, data, shape.target, Target(shape.classes), "accuracy", "", name
    )


def check(device: torch.device) -> None:
    """Compares batches with all neighbours with the whole graph.

    Raises:
        SystemExit: They differ.
    """
    dataset = generate("ogbn-mag", MAG, 0.001)
    config = load_recipe("ogbn-mag").config_for("temp_gated")
    config = config.with_changes(
        num_layers=2, fanout=(-1, -1), hidden_channels=64, shared_channels=16
    )
    loop = make_loop(dataset, config, [0], device)
    model = loop.runs.model.eval()
    x = typed_inputs(dataset.data, "paper", lambda x, _: x.to(device))
    edges = union_edges(dataset.data, "paper").to(device)
    with torch.no_grad():
        expected = model(x, Graph(edges, dataset.data.num_nodes))
        drawn = next(iter(loop.batches.sampler))
        batch = loop.batches.batch_of(drawn)
        count = batch.labels.size(0)
        found = loop.runs.logits(batch)[0][:count]
        seeds = drawn["paper"].n_id[:count].to(device)
        difference = float((found - expected[seeds]).abs().max())
    spread = float(expected.std(0).mean())
    print(
        f"a batch differs from the whole graph by at most {difference:.1e}; scores of "
        f"nodes have the standard deviation {spread:.1e}"
    )
    if not difference < 1e-2 * spread:
        raise SystemExit("batches give other scores than the whole graph")


def measure(dataset: Dataset, config: RunConfig, device: torch.device) -> dict:
    """Time of a step, and the most memory it took."""
    is_cuda = device.type == "cuda"
    if is_cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    loop = make_loop(dataset, config, [0], device)
    sampling, steps, nodes, edges = [], [], 0, 0
    for number in range(WARM_UP_STEPS + STEPS):
        start = _now(is_cuda)
        batch = loop.batches.sampler.batch(0, number)
        sampled = _now(is_cuda)
        loop.train_on(loop.batches.batch_of(batch))
        if number >= WARM_UP_STEPS:
            sampling.append(sampled - start)
            steps.append(_now(is_cuda) - start)
            nodes += batch.graph.num_nodes
            edges += sum(batch.graph.edges_per_hop)
        del batch
    count, step = len(loop.batches), sum(steps) / STEPS
    peak = torch.cuda.max_memory_allocated() / 2**30 if is_cuda else 0.0
    return {
        "nodes_per_batch": nodes // STEPS,
        "edges_per_batch": edges // STEPS,
        "sample_ms": f"{1e3 * sum(sampling) / STEPS:.1f}",
        "step_ms": f"{1e3 * step:.1f}",
        "steps_per_epoch": count,
        "epoch_s": f"{step * count:.1f}",
        "peak_gib": f"{peak:.1f}",
    }


def _now(is_cuda: bool) -> float:
    if is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """Measures every dataset until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--scale", type=float, default=1.0, help="a smaller graph")
    parser.add_argument("--batch-size", type=int, help="in place of the recipe's")
    parser.add_argument("--datasets", default=",".join(SHAPES))
    parser.add_argument("--methods", default="gat,temp_gated")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    begin = time.perf_counter()
    check(device)
    rows: list[dict] = []
    for name in arguments.datasets.split(","):
        dataset = generate(name, SHAPES[name], arguments.scale)
        for method, per_head in product(arguments.methods.split(","), (False, True)):
            config = load_recipe(name).config_for(method)
            width, heads = WIDTHS[name], config.heads
            config = config.with_changes(
                hidden_channels=width * heads if per_head else width,
                batch_size=arguments.batch_size or config.batch_size,
            )
            while time.perf_counter() - begin < arguments.seconds:
                row = {
                    "dataset": name,
                    "method": method,
                    "hidden_channels": config.hidden_channels,
                    "batch_size": config.batch_size,
                    "nodes": int(dataset.data.num_nodes),
                    "edges": int(dataset.data.num_edges),
                    "note": f"{width} {'per head' if per_head else 'in all'}, "
                    f"{heads} heads, scale {arguments.scale:g}",
                    "date": datetime.date.today().isoformat(),
                    "machine": machine(device),
                    "torch": torch.__version__,
                }
                try:
                    row |= measure(dataset, config, device)
                except torch.OutOfMemoryError:
                    row["note"] += ", out of memory"
                print({k: row.get(k, "") for k in FIELDS[:14]}, flush=True)
                rows.append(row)
                _write(arguments.out / "typed.csv", rows)
                if "peak_gib" in row:
                    break
                # How many seeds do fit?
                config = config.with_changes(
                    batch_size=int(config.batch_size or 2) // 2
                )


def _write(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
