"""Tables of the pages on speed, small and large graphs, layers and own graphs.

    python -m benchmarks.pages

`PAGES` has the functions that make the tables of each page; `studies.pages` fills them
in. A test fails if a page and the files differ.
"""

import csv
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.front_page import MEMORY_GIB
from benchmarks.small_graphs import SIZES
from studies.pages import DOCS, fill
from tempergat.base import write_text

RESULTS = Path(__file__).parent / "results"
GRAPHS = {"arxiv": "arxiv size", "reddit": "Reddit size", "products": "products size"}
OPS = {"gat": "GAT", "gatv2": "GATv2"}
ACCURACIES = (0.45, 0.85, 0.88)
# Columns of files that a page shows as they are, and how many of them are words.
MEASURED = {
    "short_rows": (
        ("graph", "op", "ms", "scores_ms", "compulsory_ms", "ratio", "target", "met"),
        2,
    ),
    "dot_product": (
        ("what", "graph", "dtype", "ms", "peak_gib", "ratio", "target", "met"),
        3,
    ),
    "mesh": (
        (
            "what",
            "graph",
            "dtype",
            "forward_ms",
            "ms",
            "ratio",
            "peak_gib",
            "edges_gib",
        ),
        3,
    ),
    "feature_sets": (
        ("layer", "sets", "nodes", "edges", "ms", "replicated_ms", "ratio", "met"),
        1,
    ),
}
Row = dict[str, str]


def read(name: str) -> list[Row]:
    """The rows of a file of results."""
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def pick(rows: Sequence[Row], **values: str) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row[k] == v for k, v in values.items())]


def short(value: str | float) -> str:
    """A number with three digits."""
    number = float(value)
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def table(head: Sequence[str], body: Sequence[Sequence[str]], words: int) -> str:
    """A table whose first columns are words and whose others are numbers."""
    rule = "|" + "---|" * words + "---:|" * (len(head) - words)
    rows = [f"| {' | '.join(cells)} |".replace("  ", " ") for cells in body]
    return "\n".join([f"| {' | '.join(head)} |", rule, *rows])


def ten_rows() -> str:
    """Where a training step takes less time and memory than PyG's, and where not.

    `ten_rows.csv` says which measurements; the last row has many runs at once.
    """
    body = []
    with (RESULTS.parent / "ten_rows.csv").open(newline="") as file:
        for asked in csv.DictReader(file):
            places = pick(read(asked["file"]), graph=asked["graph"])
            rows = {
                row.get("layer", row.get("what", "")): row
                for row in places
                if row.get("size", "") == asked["size"]
            }
            pyg, ours = rows[asked["pyg"]], rows[asked["ours"]]
            compiled = rows.get(f"{asked['pyg']} compiled")
            times = f"{_ms(pyg) / _ms(ours):.2g}" if _ms(pyg) else "runs"
            cells = [_time_and_memory(row) for row in (pyg, compiled, ours)]
            body.append([asked["step"], asked["place"], *cells, times])
    (seeds,) = pick(read("seeds_cuda"), what="epoch", method="gat", dropout="0.0")
    alone = float(seeds["pyg_run_ms"]) * int(seeds["seeds"])
    together = float(seeds["all_seeds_ms"])
    cells = [
        f"{short(alone)} ms",
        "",
        f"{short(together)} ms",
        f"{alone / together:.3g}",
    ]
    body.append([f"{seeds['seeds']} runs of GAT", "Cora, H200", *cells])
    head = ["a step of", "on", "PyG", "PyG, compiled", "tempergat", "times faster"]
    return table(head, body, 2)


def molecules() -> str:
    """Models on batches of molecules; of ours the faster one, eager or compiled."""
    head = ["graph", "heads", "edge features", "layer", "PyG", "PyG, compiled"]
    head += [
        f"{which}{what}" for which in ("", "before, ") for what in ("plain", "both")
    ]
    body = []
    for row in read("molecules"):
        cells = [row["graph"], f"{row['heads']} x {row['channels']}", row["edge_dim"]]
        cells += [row["layer"], short(row["pyg_ms"]), short(row["pyg_compiled_ms"])]
        for ours in ("plain", "both", "before_plain", "before_both"):
            each = (row[f"{ours}_ms"], row[f"{ours}_compiled_ms"])
            fastest = min(map(float, filter(None, each)), default=None)
            ratio = row[f"{ours}_ratio"]
            cells.append("" if fastest is None else f"{short(fastest)} ({ratio})")
        body.append(cells)
    return table(head, body, 4)


def small_batches(what: str, cores: str = "") -> str:
    """The loaders or the epochs, with any number of cores, or without targets this."""
    rows = [r for r in _last_batches(what) if r["cores"] == (cores or r["cores"])]
    if what == "loader":
        head = ["cores", "features", "graphs", "PyG", "PyG, two workers", "copy"]
        head += ["GraphLoader", "times faster"]
        names = ("pyg_ms", "workers_ms", "copy_ms", "ours_ms")
        body = [
            [
                *(row["cores"], row["features"], row["graphs"]),
                *(short(row[name]) for name in names),
                row["times_faster"],
            ]
            for row in rows
        ]
    else:
        head = ["graphs", "layer", "PyG", "of it the loader", "tempergat", ""]
        head += ["over PyG's"]
        body = []
        for row in rows:
            cells = [row["graphs"], row["layer"], short(row["pyg_ms"])]
            cells.append(f"{_loader_share(row):.0f} %")
            way = "compiled" if row["faster"] == "ours_compiled" else "eager"
            body.append([*cells, short(row[f"{row['faster']}_ms"]), way, row["ratio"]])
    if not cores:
        head.append("target")
        body = [[*c, row["target"]] for c, row in zip(body, rows, strict=True)]
    return table(head, body, 0 if what == "loader" else 2)


def batches_range(what: str) -> str:
    """How many percent of PyG's epochs its loader takes, or how much faster ours is."""
    if what == "share":
        found = [_loader_share(row) for row in _last_batches("epoch")]
    else:
        found = [float(row["times_faster"]) for row in _last_batches("loader")]
    return f"{min(found):.0f} to {max(found):.0f}"


def _last_batches(what: str) -> list[Row]:
    """The rows of a table; of a case that was measured again the last one."""
    rows = pick(read("small_batches"), table=what, check="passed")
    keys = ("cores", "features", "graphs", "layer")
    return list({tuple(row[key] for key in keys): row for row in rows}.values())


def _loader_share(row: Row) -> float:
    return 100 * float(row["pyg_loader_ms"]) / float(row["pyg_ms"])


def _ms(row: Row) -> float:
    """The time of a step; zero where it ran out of memory."""
    return float(row.get("step_ms", row.get("ms")) or 0.0)


def _time_and_memory(row: Row | None) -> str:
    if row is None:
        return ""
    if not _ms(row):
        return f"out of {MEMORY_GIB:g} GiB"
    memory = row.get("peak_gib")
    return f"{short(_ms(row))} ms" + (f", {float(memory):.1f} GiB" if memory else "")


def small_graphs(device: str) -> str:
    """Layers on small graphs.

    PyG's layers have milliseconds; ours have milliseconds and how many times PyG's time
    that is, with a star where a target is missed.
    """
    rows, body = read(f"small_graphs_{device}"), []
    # The gate's product, measured where features are wide, is no layer.
    layers = [x for x in dict.fromkeys(row["layer"] for row in rows) if "@" not in x]
    for size, graph in dict.fromkeys((row["size"], row["graph"]) for row in rows):
        same = {row["layer"]: row for row in pick(rows, size=size, graph=graph)}
        first = same[layers[0]]
        skewed = ", skewed" if SIZES[size].skewed else ""
        wide = f", {size}" if size.endswith("features") else ""
        what = f"{int(first['nodes']):,}; {int(first['edges']):,}{skewed}{wide}"
        body.append([what, graph, *(_layer_cell(same[layer]) for layer in layers)])
    # Names of our layers would make the table wider than a page.
    head = [x if x.startswith("PyG") else "ours, " + x.split(", ")[1] for x in layers]
    return table(["nodes; edges", "graph", *head], body, 2)


def _layer_cell(row: Row) -> str:
    if not row["ms"]:
        return "wrong"
    ms = f"{float(row['ms']):.3g}"
    missed = " \\*" if row["met"] == "no" else ""
    return f"{ms} ({row['ratio']}){missed}" if row["target"] else ms


def first_minute() -> str:
    """Start-up, first steps and whole commands."""
    body = []
    for row in read("first_minute_cuda"):
        outcome = {"yes": "met", "no": "missed", "": ""}[row["met"]]
        body.append([row["what"], short(row["seconds"]), row["target"], outcome])
        body[-1].append(f"H200, {row['commit']}")
    cpu = read("first_minute_cpu")
    answers = [row for row in cpu if row["target"] == "1"]
    times = sorted(float(row["seconds"]) for row in answers)
    what = f"`methods`, `data list`, misspelt names: {len(answers)} commands"
    place = f"two CPU cores, {cpu[0]['commit']}"
    met = "met" if times[-1] < 1.0 else "missed"
    body.append([what, f"{times[0]:.2g} to {times[-1]:.2g}", "1", met, place])
    for row in cpu:
        if row["target"] not in ("", "1"):
            met = "met" if row["met"] == "yes" else "missed"
            cells = [row["what"], short(row["seconds"]), row["target"], met, place]
            body.append(cells)
    body = [[*cells[:1], cells[4], *cells[1:4]] for cells in body]
    return table(["what", "where, commit", "seconds", "target", ""], body, 2)


def large_ops() -> str:
    """The attention op alone on graphs of three sizes."""
    rows, body = read("attention_gpu"), []
    for graph, title in GRAPHS.items():
        for op, name in OPS.items():
            places = pick(rows, what=f"op {op}", graph=graph)
            single, half = (
                pick(places, dtype=kind)[0] for kind in ("float32", "bfloat16")
            )
            shape = f"{title}, {single['heads']} x {single['channels']}"
            times = float(single["step_ms"]) / float(half["step_ms"])
            cells = [shape, name, *_both(single, half), single["floor_ms"]]
            body.append([*cells, f"{times:.2f}", single["target_ms"]])
    head = ["graph, heads x channels", "op", "float32", "bfloat16"]
    head += ["floor, float32", "times", "target, float32"]
    return table(head, body, 2)


def _both(single: Row, half: Row) -> list[str]:
    return [
        f"{short(row['forward_ms'])} / {short(row['step_ms'])}"
        for row in (single, half)
    ]


def whole_layers() -> str:
    """A training step of a whole layer beside PyG's."""
    body = []
    for row in read("attention_gpu"):
        what = row["what"].replace("layer gatv2", "TemperGATv2Conv,")
        what = what.replace("layer gat", "TemperGATConv,")
        if not what.startswith(("Temper", "PyG")) or what.endswith(" tempered"):
            continue
        what = what.replace("tempered, gated", "temperature and gate")
        memory = f"{short(row['peak_gib'])} GiB" if row["peak_gib"] else ""
        time = f"{short(row['step_ms'])} ms" if row["step_ms"] else "out of 140 GiB"
        beyond = row["note"].split("%")[0] + " %" if "%" in row["note"] else ""
        body.append([GRAPHS[row["graph"]], what, time, beyond, memory])
    head = ["graph", "layer", "time", "beyond the gate's product"]
    return table([*head, "memory beyond x, weights, graph"], body, 2)


def attention_cpu() -> str:
    """Ops and layers on two cores beside PyG's."""
    targets = {("cora", "op"): "3", ("arxiv", "gat"): "12", ("arxiv", "gatv2"): "20"}
    targets["60k", "transformer"] = "8"
    titles = GRAPHS | {"cora": "Cora's size", "60k": "60,000 nodes, 800,000 edges"}
    body = []
    for row in read("attention_cpu"):
        graph, op, level = row["graph"], row["backbone"], row["level"]
        target = targets.get((graph, level), targets.get((graph, op), ""))
        shape = f"{titles[graph]}, {row['heads']} x {row['channels']}"
        times = [
            " / ".join(short(row[f"{who}_{way}_ms"]) for way in ("forward", "backward"))
            for who in ("ours", "pyg")
        ]
        what = f"{OPS.get(op, op)} {level}"
        body.append([shape, what, *times, row["times_faster"]])
        body[-1].append(target if level == "op" or op == "transformer" else "")
    head = ["graph, heads x channels", "what", "tempergat", "PyG", "times", "target"]
    return table(head, body, 2)


def seeds_cpu() -> str:
    """All seeds at once on two cores: medians and ranges over repeated runs."""
    rows, body = read("seeds_cpu"), []
    for method, dropout in dict.fromkeys((r["method"], r["dropout"]) for r in rows):
        same = pick(rows, method=method, dropout=dropout)
        pyg, ours, times = (
            [float(row[name]) for row in same]
            for name in ("pyg_run_ms", "all_seeds_ms", "times_faster")
        )
        spread = (
            f"{statistics.median(times):.1f} ({min(times):.1f} to {max(times):.1f})"
        )
        middle = [f"{statistics.median(found):.0f} ms" for found in (pyg, ours)]
        body.append([method, f"{float(dropout):g}", *middle, spread])
    head = ["method", "dropout", "PyG, one run", "tempergat, 50 seeds", "times"]
    return table(head, body, 1)


def seeds_cuda() -> str:
    """All seeds at once on a GPU."""
    rows, body = read("seeds_cuda"), []
    for row in pick(rows, what="epoch"):
        key = {"method": row["method"], "dropout": row["dropout"]}
        first = pick(rows, what="epoch, first time", **key)[0]
        times = [f"{float(r['times_faster']):.0f}" for r in (row, first)]
        ms = [f"{float(row[k]):.1f} ms" for k in ("pyg_run_ms", "all_seeds_ms")]
        body.append([row["method"], f"{float(row['dropout']):g}", *ms, *times, "60"])
    head = ["method", "dropout", "PyG, one run", "tempergat, 50 seeds", "times"]
    return table([*head, "the first time", "target"], body, 1)


def whole_study() -> str:
    """All methods and seeds of three graphs."""
    rows = [row for row in read("seeds_cuda") if row["what"].endswith("all epochs")]
    body = []
    for commit in dict.fromkeys(row["commit"] for row in rows):
        cells = [commit]
        for graph in ("cora", "citeseer", "pubmed"):
            what = f"{graph}, all methods, all epochs"
            found = pick(rows, commit=commit, what=what)
            cells += [f"{float(row['all_seeds_ms']) / 1e3:.1f} s" for row in found]
            cells += [] if found else ["-"]
        body.append(cells)
    return table(["commit", "Cora", "Citeseer", "Pubmed"], body, 1)


def products() -> str:
    """Kernels of many models before and after a change."""
    body = [
        [row["what"], f"{float(row['before_ms']):.2f}", f"{float(row['ms']):.2f}"]
        for row in read("products_cuda")
    ]
    return table(["what", "before", "since"], body, 1)


def time_to_accuracy() -> str:
    """When each way of training first reaches an accuracy."""
    rows, body = read("time_to_accuracy"), []
    ways = dict.fromkeys((row["way"], row["learning_rate"]) for row in rows)
    for place, (way, rate) in enumerate(ways):
        same = pick(rows, way=way, learning_rate=rate)
        # Kernels are compiled before the first score of all.
        begin = 0.0 if place else float(same[0]["train_s"])
        cells = [f"{way}, learning rate {rate}"]
        for accuracy in ACCURACIES:
            hit = next(row for row in same if float(row["accuracy"]) >= accuracy)
            seconds = float(hit["train_s"]) - begin
            cells.append(f"{seconds:.2g} s, {hit['steps']} steps")
        memory = max(float(row["peak_gib"]) for row in same)
        body.append([*cells, f"{memory:.1f} GiB"])
    shown = [f"{accuracy} of nodes right" for accuracy in ACCURACIES]
    return table(["", *shown, "memory"], body, 5)


def sampled_epochs() -> str:
    """Epochs of sampled training on a GPU."""
    body = []
    for row in read("sampling_cuda"):
        if row["what"].startswith("epoch"):
            way = "one CUDA graph" if "graph" in row["what"] else "kernel by kernel"
            precision = "TF32" if row["note"].startswith("high ") else "float32"
            step = f"{short(row['ms_per_batch'])} ms"
            epoch = f"{float(row['epoch_s']):.2f} s"
            graph = GRAPHS[row["graph"]]
            body.append([graph, way, precision, step, epoch, f"{row['target']} s"])
    body.sort(key=lambda cells: (cells[0], cells[1] != "one CUDA graph", cells[2]))
    head = [
        "graph",
        "a step is launched as",
        "matrix products in",
        "a step",
        "an epoch",
    ]
    return table([*head, "target"], body, 3)


def drop_in() -> str:
    """Our layer in two of PyG's examples: means and deviations over seeds."""
    rows = read("drop_in")
    body = []
    for layer in dict.fromkeys(row["layer"] for row in rows):
        body.append([layer if layer.endswith("PyG") else f"`{layer}`"])
        for example in ("nodes", "links"):
            found = [
                float(r["score"]) for r in pick(rows, layer=layer, example=example)
            ]
            mean, spread = statistics.mean(found), statistics.stdev(found)
            body[-1].append(f"{mean:.1f} ± {spread:.1f}")
    return table(["layer", "`gat.py`, accuracy", "`link_pred.py`, AUC"], body, 1)


def typed() -> str:
    """Steps and memory on generated graphs like the typed datasets."""
    body = []
    for row in read("typed_cuda"):
        width, heads, *_ = row["note"].split(", ")
        cells = [row["dataset"], f"{heads}, {width}", row["batch_size"]]
        if not row["step_ms"]:
            body.append([*cells, "", "", "", "more than 140 GiB"])
            continue
        nodes = f"{int(row['nodes_per_batch']) / 1e3:,.0f} thousand"
        epoch = f"{float(row['epoch_s']):,.0f} s"
        step = f"{float(row['step_ms']):,.0f} ms"
        body.append([*cells, nodes, step, epoch, f"{row['peak_gib']} GiB"])
    head = ["dataset", "model", "seeds in a batch", "nodes in a batch"]
    return table([*head, "a step", "an epoch", "memory"], body, 2)


def own_graph(name: str) -> str:
    """What `compare` printed on a graph of a user."""
    rows = read(f"own_graph/tables/{name}")
    head = [column for column in rows[0] if column not in ("machine", "commit")]
    return table(head, [[row[column] for column in head] for row in rows], 1)


def verdict(name: str) -> str:
    """What `compare` said below a table of a user's graph."""
    (row,) = pick(read("own_graph/verdicts"), name=name)
    return row["verdict"]


def measured(name: str) -> str:
    """Some columns of a file of results, as they are; checks have no time."""
    head, words = MEASURED[name]
    body = [[row[column] for column in head] for row in read(name) if row["ms"]]
    return table([column.replace("_", " ") for column in head], body, words)


PAGES: dict[str, tuple[Callable[..., str], ...]] = {
    "speed": (ten_rows,),
    "measurements": (
        measured,
        small_graphs,
        molecules,
        small_batches,
        first_minute,
        large_ops,
        whole_layers,
        attention_cpu,
        seeds_cpu,
        seeds_cuda,
        whole_study,
        products,
    ),
    "small_graphs": (small_batches, batches_range),
    "large": (time_to_accuracy, sampled_epochs, typed),
    "layers": (drop_in,),
    "own_graph": (own_graph, verdict),
}


def filled(page: str) -> str:
    """The text of a page with its tables made again."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    makers = {make.__name__: make for make in PAGES[page]}
    return fill(text, makers, makers)


def main() -> None:
    for page in PAGES:
        write_text(DOCS / f"{page}.md", filled(page))


if __name__ == "__main__":
    main()
