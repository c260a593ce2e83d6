"""Time and memory of the attention ops against the size of the graph, as a picture."""

import csv
from pathlib import Path


def plot(out: Path) -> None:
    """Draws time and memory against edge-heads from the table."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with (out / "attention_gpu.csv").open() as file:
        rows = [r for r in csv.DictReader(file) if "edge-heads" in r["graph"]]
    figure, (time, memory) = plt.subplots(1, 2, figsize=(10, 4))
    for (what, dtype), colour in zip(
        [(f"op {k}", d) for k in ("gat", "gatv2") for d in ("float32", "bfloat16")],
        ("#0072b2", "#56b4e9", "#d55e00", "#e69f00"),
        strict=True,
    ):
        line = [r for r in rows if (r["what"], r["dtype"]) == (what, dtype)]
        if not line:
            continue
        x = [int(r["edges"]) * int(r["heads"]) for r in line]
        label = f"{what.removeprefix('op ')} {dtype}"
        style = {"color": colour, "marker": "o", "markersize": 4, "label": label}
        time.loglog(x, [float(r["step_ms"]) for r in line], **style)
        memory.loglog(x, [float(r["peak_gib"]) for r in line], **style)
        floor = [float(r["floor_ms"].split(" / ")[1]) for r in line]
        time.loglog(x, floor, color=colour, linestyle=":", linewidth=1)
    time.plot([], [], color="grey", linestyle=":", label="byte floor, nothing cached")
    time.set(xlabel="edges times heads", ylabel="forward + backward, ms")
    memory.set(xlabel="edges times heads", ylabel="peak memory of the step, GiB")
    for axes in (time, memory):
        axes.grid(alpha=0.3)
    time.legend(fontsize=8)
    if rows:
        figure.suptitle(f"{rows[0]['device']}, torch {rows[0]['torch']}", fontsize=9)
    figure.tight_layout()
    figure.savefig(out / "attention_gpu.svg")
