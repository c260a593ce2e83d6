"""`tempergat predict`: classes of nodes from a checkpoint."""

from pathlib import Path
from typing import Annotated

import typer

from tempergat.cli.ui.graphs import load_graph
from tempergat.cli.ui.json_output import print_json
from tempergat.cli.ui.options import (
    DatasetName,
    DeviceName,
    Json,
    parse_device,
    require_writable,
)
from tempergat.cli.ui.reading import Reading, with_reading_options


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(with_reading_options(predict))


def predict(
    checkpoint: Annotated[
        Path, typer.Argument(help="A checkpoint of `tempergat train`, or its folder.")
    ],
    data: DatasetName,
    out: Annotated[Path, typer.Option(help="The CSV to write.")] = Path("labels.csv"),
    *,
    reading: Reading,
    device: DeviceName = "auto",
    as_json: Json = False,
) -> None:
    """Classify the nodes of a graph with a checkpoint; they need no labels.

    Writes a CSV of nodes and class numbers. Classes that are words are numbered in
    alphabetical order.
    """
    from tempergat.base import csv_text, write_text
    from tempergat.training import predict as predict_classes

    require_writable(out.parent)
    graph = load_graph(data, None, None, None, reading, labelled=False)
    classes = predict_classes(checkpoint, graph, parse_device(device)).tolist()
    nodes = graph.node_ids or range(len(classes))
    lines = [
        {"node": node, "label": label}
        for node, label in zip(nodes, classes, strict=True)
    ]
    write_text(out, csv_text(lines))
    counts = {label: classes.count(label) for label in sorted(set(classes))}
    if as_json:
        facts = {
            "dataset": graph.name,
            "nodes": len(classes),
            "per_class": {str(label): count for label, count in counts.items()},
            "file": str(out),
        }
        print_json(facts)
        return
    listed = ", ".join(f"{count:,} of class {label}" for label, count in counts.items())
    typer.echo(f"{graph.name}: {len(classes):,} nodes, {listed}")
    typer.echo(f"wrote {out}")
