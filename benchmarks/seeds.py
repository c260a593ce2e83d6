"""Many seeds at once beside sequential PyG runs, in one process.

    python -m benchmarks.seeds --device cpu
    python -m benchmarks.seeds --device cuda --whole cora citeseer pubmed

The PyG run is `torch_geometric.nn.models.GAT(1433, 64, 2, 7, heads=8, act="elu")` on
dense features with the same optimiser, an evaluation every epoch and the same initial
weights as seed 0 of the group. Without dropout both must then have the same losses,
which is checked. On a GPU ours is run twice: the first time on a machine it compiles
its kernels, which stay there. Rows are appended to
benchmarks/results/seeds_<device>.csv; times are per epoch, of one run for PyG and of
the whole group for ours.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch_geometric.nn.models import GAT

from benchmarks.origin import add_row, origin
from tempergat.comparison.storage.rows import even_groups
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps.sweep import sweep
from tempergat.data import Dataset, load
from tempergat.nn.methods import METHODS
from tempergat.training import RunConfig, group_size, load_recipe
from tempergat.training.groups import make_loop
from tempergat.training.loop import COLUMNS
from tempergat.training.runs.models import single_model

RESULTS = Path(__file__).parent / "results"
# Equal sums in another order, through 5 steps of Adam.
LOSS_TOLERANCE = 1e-4
COMPARED_EPOCHS = 5


def settings(method: str, dropout: float, epochs: int) -> RunConfig:
    """Cora's recipe as PyG's model can have it: 8 output heads, one dropout rate."""
    return (
        load_recipe("cora")
        .config_for(method)
        .with_changes(
            epochs=epochs,
            out_heads=8,
            feature_dropout=dropout,
            attention_dropout=dropout,
        )
    )


def run_pyg(
    dataset: Dataset, config: RunConfig, device: torch.device, epochs: int
) -> tuple[list[float], float]:
    """A PyG user's loop: its losses, and seconds per epoch after the first ones."""
    data = dataset.data.clone()
    data.x = data.x.to_dense()
    data = data.to(device)
    model = GAT(
        data.num_features,
        config.hidden_channels,
        config.num_layers,
        dataset.predicted.width,
        heads=config.heads,
        act=config.act,
        dropout=config.feature_dropout,
        v2=config.method == "gatv2",
    )
    ours = single_model(config, data.num_features, dataset.predicted.width, seed=0)
    model.load_state_dict(ours.state_dict())
    model = model.to(device)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    losses: list[float] = []
    start = 0.0
    for epoch in range(COMPARED_EPOCHS + epochs):
        if epoch == COMPARED_EPOCHS:
            start = time.perf_counter()
        model.train()
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            out = model(data.x, data.edge_index)
            F.cross_entropy(out[data.val_mask], data.y[data.val_mask]).item()
            correct = out.argmax(dim=1) == data.y
            for mask in (data.train_mask, data.val_mask, data.test_mask):
                correct[mask].float().mean().item()
    return losses, (time.perf_counter() - start) / epochs


def run_group(
    dataset: Dataset, config: RunConfig, seeds: range, device: torch.device
) -> tuple[list[float], float]:
    """All seeds, in groups: the losses of seed 0, and seconds per epoch of all.

    On a GPU the time is that of all epochs with everything around them, on a CPU that
    of the epochs after the first two.
    """
    size = group_size(dataset, config, device)
    losses: list[float] = []
    total = 0.0
    for members in even_groups(seeds, size):
        whole = time.perf_counter()
        loop = make_loop(dataset, config, members, device)
        loop.run(until=2)
        warm = time.perf_counter()
        loop.run()
        history = loop.history.cpu()
        done = time.perf_counter()
        if device.type == "cuda":
            total += (done - whole) / config.epochs
        else:
            total += (done - warm) / (config.epochs - 2)
        losses = losses or history[:, 0, COLUMNS.index("loss")].tolist()
    return losses, total


def compare(
    dataset: Dataset, method: str, dropout: float, seeds: int, device: torch.device
) -> list[dict[str, Any]]:
    """Rows: PyG's time, ours, and how many times faster ours is."""
    on_gpu = device.type == "cuda"
    config = settings(method, dropout, epochs=400 if on_gpu else 8)
    pyg_losses, pyg_s = run_pyg(dataset, config, device, epochs=50 if on_gpu else 10)
    first_s = None
    if on_gpu:
        _, first_s = run_group(dataset, config, range(seeds), device)
    losses, ours_s = run_group(dataset, config, range(seeds), device)
    compared = (losses[:COMPARED_EPOCHS], pyg_losses[:COMPARED_EPOCHS])
    differences = [abs(a - b) for a, b in zip(*compared, strict=True)]
    # Unlike Python's, torch's maximum of a NaN and a number is NaN.
    difference = float(torch.tensor(differences, dtype=torch.float64).max())
    if dropout == 0.0 and not difference <= LOSS_TOLERANCE:
        raise SystemExit(f"losses of {method} differ from PyG's by {difference}")
    times = {"epoch, first time": first_s, "epoch": ours_s}
    return [
        {
            "what": what,
            "method": method,
            "dropout": dropout,
            "seeds": seeds,
            "pyg_run_ms": round(1e3 * pyg_s, 3),
            "all_seeds_ms": round(1e3 * taken_s, 3),
            "times_faster": round(pyg_s * seeds / taken_s, 2),
            "loss_difference": f"{difference:.1e}" if dropout == 0.0 else "",
        }
        for what, taken_s in times.items()
        if taken_s is not None
    ]


def whole_study(name: str, seeds: int, device: torch.device) -> dict[str, Any]:
    """One row: all methods of the paper with the dataset's recipe, as a study."""
    dataset, recipe = load(name), load_recipe(name)
    methods = [method for method, facts in METHODS.items() if facts.in_paper]
    configs = [recipe.config_for(method) for method in methods]
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s") as store:
        start = time.perf_counter()
        sweep(dataset, configs, range(seeds), store, device)
        taken_s = time.perf_counter() - start
    return {
        "what": f"{name}, all methods, all epochs",
        "seeds": seeds,
        "all_seeds_ms": round(1e3 * taken_s, 1),
    }


def save(rows: list[dict[str, Any]], device: torch.device) -> None:
    """Appends the rows, with machine and versions, to the device's file."""
    about = origin(device)
    names = ("what", "method", "dropout", "seeds", "pyg_run_ms", "all_seeds_ms")
    columns = [*names, "times_faster", "loss_difference", *about]
    RESULTS.mkdir(exist_ok=True)
    for row in rows:
        add_row(RESULTS / f"seeds_{device.type}.csv", row | about, columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--methods", nargs="*", default=["gat", "gatv2"])
    parser.add_argument("--dropout", type=float, nargs="*", default=[0.0, 0.6])
    parser.add_argument("--whole", nargs="*", default=[])
    options = parser.parse_args()
    device = torch.device(options.device)
    dataset = load("cora")
    for method in options.methods:
        for dropout in options.dropout:
            found = compare(dataset, method, dropout, options.seeds, device)
            print(*found, sep="\n", flush=True)
            save(found, device)
    for name in options.whole:
        row = whole_study(name, options.seeds, device)
        print(row, flush=True)
        save([row], device)


if __name__ == "__main__":
    main()
