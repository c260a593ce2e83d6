"""Models on batches of molecules beside PyTorch Geometric's, eager and compiled.

    python -m benchmarks.molecules
    python -m benchmarks.molecules --channels 64 --threads 2 --edge-dim 0
    python -m benchmarks.molecules --graphs 20k "20k, kept" Cora 800k --before PATH

A step is forward, backward and Adam of a model: attention layers with batch norm
between them and a sum over each graph. Every step has a batch whose `edge_index` no
cache has seen, made before the clock starts; the graphs that are kept have the same one
in every step. Times are processor time with one thread, else wall time, and medians of
rounds in which all models take turns. PyG's model and ours without temperature and gate
start from the same weights; their outputs and gradients are compared first, and ours
with both are compared with the same layers that build their messages as PyG does. A
layer whose check fails has no times. One row per graph and layer is added to
benchmarks/results/molecules.csv. A ratio is that of our faster model, eager or
compiled, to PyG's under `torch.compile(dynamic=True)`. Layers add no self-loops, which
PyG's cannot without a break in the compiled graph; `--self-loops` has them added.
`--before` names another checkout of this project, with its environment in `.venv`; the
columns that begin with "before" are its times, measured in turns with ours.
"""

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool

from benchmarks.origin import ROOT, add_row, origin
from benchmarks.small_graphs import PAIRS, PLAIN, RESULTS, Layer, results

ATOMS, BONDS, HEADS = 25, 54, 4
# Rounding grows through five layers.
TOLERANCE = 1e-3
# Rounds that compile and warm up, and those that count.
WARM_UP, ROUNDS = 2, 7
LAYERS = dict(zip(("GAT", "GATv2", "transformer"), PAIRS, strict=True))
PYG = ("pyg", "pyg_compiled")
OURS = ("plain", "plain_compiled", "both", "both_compiled")


class Size(NamedTuple):
    """How many molecules, or nodes and edges of one graph, and how deep the model is.

    Features of edges are left out where a model has none.
    """

    graphs: int
    nodes: int
    edges: int
    num_features: int = 64
    layers: int = 5
    kept: bool = False
    has_edge_features: bool = True


SIZES = {
    "32 molecules": Size(32, 32 * ATOMS, 32 * BONDS),
    "512 molecules": Size(512, 512 * ATOMS, 512 * BONDS),
    "20k": Size(1, 20_000, 200_000, layers=1),
    "20k, kept": Size(1, 20_000, 200_000, layers=1, kept=True),
    "Cora": Size(1, 2_708, 10_556, 1_433, 2, True, False),
    "800k": Size(1, 60_000, 800_000, layers=1),
}


class Model(nn.Module):
    """Attention layers with batch norm between them, and a sum over each graph."""

    def __init__(self, size: Size, make: Callable[..., nn.Module], width: int) -> None:
        super().__init__()
        widths = [size.num_features, *[width] * (size.layers - 1)]
        self.convs = nn.ModuleList(map(make, widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in widths[1:])

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, batch: Tensor
    ) -> Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=False):
            # Not ReLU: rounding moves sums across its bend, and gradients jump there.
            x = F.elu(norm(conv(x, edge_index, edge_attr)))
        x = self.convs[-1](x, edge_index, edge_attr)
        return global_add_pool(x, batch, self.num_graphs)


def make_models(
    size: Size, layer: str, channels: int, edge_dim: int, self_loops: bool = False
) -> list[Layer]:
    """PyG's model and ours with the same weights, eager and compiled."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {"out_channels": channels, "heads": HEADS}
    if edge_dim and size.has_edge_features:
        shape["edge_dim"] = edge_dim
    if layer != "transformer":
        shape["add_self_loops"] = self_loops

    def model(layer_class: Any, **others: Any) -> Model:
        made = Model(
            size, lambda width: layer_class(width, **shape, **others), HEADS * channels
        )
        made.num_graphs = size.graphs
        return made

    theirs, ours = LAYERS[layer]
    eager, plain, both = model(theirs), model(ours, **PLAIN), model(ours)
    plain.load_state_dict(eager.state_dict())
    by_messages = copy.deepcopy(both)
    for conv in by_messages.convs:
        conv.register_message_forward_hook(lambda *_: None)
    layers = []
    for name, module, expected in (
        ("pyg", eager, None),
        ("plain", plain, copy.deepcopy(eager)),
        ("both", both, by_messages),
    ):
        compiled = torch.compile(copy.deepcopy(module), dynamic=True)
        layers.append(Layer(name, module, "pyg", expected))
        layers.append(Layer(f"{name}_compiled", compiled, "pyg", expected or eager))
    return layers


def draw(size: Size, edge_dim: int, seed: int) -> tuple[Tensor | None, ...]:
    """A batch: the arguments of a model. A molecule is a chain with three rings."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size.nodes, size.num_features, generator=generator)
    batch = torch.arange(size.graphs).repeat_interleave(size.nodes // size.graphs)
    half = torch.randint(size.nodes, (2, size.edges // 2), generator=generator)
    if size.graphs > 1:
        chain = torch.stack([torch.arange(ATOMS - 1), torch.arange(1, ATOMS)])
        rings = torch.randint(ATOMS - 2, (2, size.graphs, 3), generator=generator)
        # Both ends are different.
        rings[1] = (rings[0] + 2 + rings[1] % (ATOMS - 3)) % ATOMS
        chain = chain[:, None].expand(-1, size.graphs, -1)
        half = torch.cat([chain, rings], 2)
        half = (half + torch.arange(size.graphs)[:, None] * ATOMS).flatten(1)
    edge_index = torch.stack([half, half.flip(0)], 2).flatten(1)
    edge_attr = None
    if edge_dim and size.has_edge_features:
        edge_attr = torch.randn(size.edges, edge_dim, generator=generator)
    return x, edge_index, edge_attr, batch


def difference_of(layer: Layer, batch: Sequence[Any]) -> float:
    """Largest difference of output and gradients, as a part of each one's norm.

    A norm of less than 1 % of the largest of all counts as that much. As in
    `small_graphs.worst_difference`, float64 says which of two is right.
    """
    if layer.expected is None:
        return 0.0
    found = results(layer.module, *batch)
    difference = _difference(found, results(layer.expected, *batch))
    if difference > TOLERANCE:
        doubles = [
            x.double() if x is not None and x.is_floating_point() else x for x in batch
        ]
        exact = results(copy.deepcopy(layer.expected).double(), *doubles)
        difference = min(difference, _difference(found, exact))
    return difference


def _difference(found: list[Tensor], expected: list[Tensor]) -> float:
    norms = torch.stack([b.norm() for b in expected])
    differences = [(a - b).norm() for a, b in zip(found, expected, strict=True)]
    return float((torch.stack(differences) / norms.clamp(min=norms.max() / 100)).max())


def train_ms(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[tuple[Tensor | None, ...]],
    clock: Callable[[], float],
) -> float:
    """The time of one step of training, over as many steps as there are batches."""
    start = clock()
    for batch in batches:
        optimizer.zero_grad()
        module(*batch).square().mean().backward()
        optimizer.step()
    return (clock() - start) / len(batches) * 1e3


def serve() -> None:
    """Checks the models, then times a round for each line of the standard input."""
    asked = json.loads(sys.argv[1])
    torch.set_num_threads(asked["threads"])
    # Models of one class are compiled here which users have in different programs.
    torch._dynamo.config.recompile_limit = 64
    size, edge_dim = SIZES[asked["graph"]], asked["edge_dim"]
    shape = asked["layer"], asked["channels"], edge_dim, asked["self_loops"]
    models = make_models(size, *shape)
    models = [model for model in models if model.name in asked["models"]]
    first = draw(size, edge_dim, 0)
    found = {m.name: difference_of(m, first) for m in models}
    print(json.dumps(found), flush=True)
    optimizers = [torch.optim.Adam(m.module.parameters(), lr=1e-4) for m in models]
    clock = time.process_time if asked["threads"] == 1 else time.perf_counter
    steps = min(25, max(2, 80_000 // size.edges))
    for line in sys.stdin:
        numbers = range(int(line) * steps, (int(line) + 1) * steps)
        times = {}
        for model, optimizer in zip(models, optimizers, strict=True):
            # Tensors of their own: what one model's cache knows serves no other.
            batches = [draw(size, edge_dim, number) for number in numbers]
            if size.kept:
                batches = [first] * steps
            times[model.name] = train_ms(model.module, optimizer, batches, clock)
        print(json.dumps(times), flush=True)


class Worker:
    """Models of one checkout in a process of their own."""

    def __init__(self, python: str | Path, **asked: Any) -> None:
        words = ["-c", "from benchmarks.molecules import serve; serve()"]
        # Compiled functions are kept by what calls them, not by what our ops do.
        environment = {"TORCHINDUCTOR_AUTOGRAD_CACHE": "0", **os.environ}
        self.process = subprocess.Popen(
            [str(python), *words, json.dumps(asked)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment | {"OMP_NUM_THREADS": str(asked["threads"])},
        )

    def answer(self, question: int | None = None) -> dict[str, float]:
        """The next line, after asking for a round."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if question is not None:
            print(question, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a process that measures has ended; see its error above")
        return json.loads(line)

    def end(self) -> None:
        self.process.communicate()


def measure(before: Path | None, **asked: Any) -> dict[str, Any]:
    """A row: one graph and one layer."""
    workers = {"": Worker(sys.executable, models=[*PYG, *OURS], **asked)}
    if before is not None:
        python = before / ".venv" / "bin" / "python"
        workers["before_"] = Worker(python, models=OURS, **asked)
    difference = max(max(worker.answer().values()) for worker in workers.values())
    row = {**asked, "heads": HEADS, "difference": f"{difference:.1e}"}
    row["check"] = "passed" if difference < TOLERANCE else "FAILED"
    rounds = []
    for number in range(WARM_UP + ROUNDS if row["check"] == "passed" else 0):
        answers = {who: worker.answer(number) for who, worker in workers.items()}
        rounds.append(
            {who + name: ms for who in answers for name, ms in answers[who].items()}
        )
    for worker in workers.values():
        worker.end()
    return row | _summary(rounds[WARM_UP:], list(workers)) if rounds else row


def _summary(rounds: list[dict[str, float]], checkouts: list[str]) -> dict[str, str]:
    """Medians over rounds; ratios are taken in each round, of models beside another."""
    ms = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
    row = {f"{name}_ms": f"{value:.3f}" for name, value in ms.items()}
    for name in (who + ours for who in checkouts for ours in ("plain", "both")):
        faster = min(name, f"{name}_compiled", key=lambda one: ms[one])
        ratio = statistics.median(r[faster] / r["pyg_compiled"] for r in rounds)
        row[f"{name}_ratio"] = f"{ratio:.2f}"
    return row


TIMES = [f"{name}_ms" for name in (*PYG, *OURS)] + ["plain_ratio", "both_ratio"]
FIELDS = (
    "graph", "layer", "heads", "channels", "edge_dim", "self_loops", "threads", *TIMES,
    *[f"before_{name}" for name in TIMES[len(PYG):]], "check", "difference",
)  # fmt: skip


def show(row: dict[str, Any]) -> None:
    """Prints a row; ours are eager / compiled, and the ratio."""
    cells = [f"{row['graph']:<13} {row['layer']:<11}", row["check"]]
    if "pyg_ms" in row:
        cells[1:] = [f"PyG {row['pyg_ms']}, compiled {row['pyg_compiled_ms']}"]
    for who in ("", "before_"):
        for name in ("plain", "both"):
            key = who + name
            if f"{key}_ms" in row:
                ms = f"{row[f'{key}_ms']} / {row[f'{key}_compiled_ms']}"
                label = key.replace("_", " ")
                cells.append(f"{label} {ms} ({row[f'{key}_ratio']})")
    print("   ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    molecules = [name for name in SIZES if name.endswith("molecules")]
    parser.add_argument("--graphs", nargs="+", choices=SIZES, default=molecules)
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=[*LAYERS])
    parser.add_argument("--channels", type=int, default=16, help="of each of 4 heads")
    parser.add_argument("--edge-dim", type=int, default=8, help="0: no edge features")
    parser.add_argument("--self-loops", action="store_true", help="layers add them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--before", type=Path, help="another checkout, measured too")
    parser.add_argument("--out", type=Path, default=RESULTS / "molecules.csv")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    about = origin(torch.device("cpu"))
    for graph in given.graphs:
        for layer in given.layers:
            row = measure(
                given.before,
                graph=graph,
                layer=layer,
                channels=given.channels,
                edge_dim=given.edge_dim if SIZES[graph].has_edge_features else 0,
                self_loops=given.self_loops,
                threads=given.threads,
            )
            show(row)
            add_row(given.out, row | about, [*FIELDS, *about])


if __name__ == "__main__":
    main()
