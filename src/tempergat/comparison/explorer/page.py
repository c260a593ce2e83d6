"""The explorer as a section of a page, or as a page by itself."""

from __future__ import annotations

import html
from collections.abc import Iterable

from tempergat.comparison.explorer.model_record import ModelRecord, record
from tempergat.comparison.html_report.page import asset, filled, json_block, page_html
from tempergat.data import GraphInput
from tempergat.training import TrainedModel

_SCRIPTS = ("model.js", "nodes.js", "drawing.js", "gate.js", "explorer.js")


def explorer_page(recorded: ModelRecord) -> str:
    """The explorer of a model as one HTML file that needs no network.

    Args:
        recorded: What `record` returned for the model.
    """
    title = f"{recorded.method} on {recorded.dataset.name}, node by node"
    return page_html(title, explorer_html(recorded))


def explorer_section(model: TrainedModel | None, graph: GraphInput | None) -> str:
    """The explorer as the last section of a report; empty without a model.

    Args:
        model: The trained model to show.
        graph: The graph to show it on; None for that of its training.

    Raises:
        UserError: The method has no attention, or the graph cannot be used.
    """
    if model is None:
        return ""
    recorded = record(model, graph)
    heading = f"Node by node: {recorded.method} on {recorded.dataset.name}"
    return f"<h2>{html.escape(heading)}</h2>\n{explorer_html(recorded)}"


def explorer_html(recorded: ModelRecord) -> str:
    """The explorer as a section, with its style and its script."""
    layers = recorded.values["layers"]
    gated = [number for number, layer in enumerate(layers) if layer["gate"]]
    gate = f'<p class="note">{html.escape(recorded.method)} has no gate.</p>'
    if gated:
        gate = filled("explorer", "gate.html", layers=_options(gated))
    # Where predictions are computed, their bars name the classes.
    legend = "" if recorded.why_not_exact is None else _legend(recorded)
    unknown = ""
    if recorded.labelled < recorded.num_nodes:
        unknown = "Dashed, with a question mark: class not known. "
    return filled(
        "explorer",
        "explorer.html",
        style=asset("explorer", "explorer.css"),
        label=html.escape(f"Explorer of {recorded.method} on {recorded.dataset.name}"),
        answer=html.escape(_answer(recorded)),
        limits=_limits(recorded),
        layers=_options(range(len(layers))),
        legend=legend,
        unknown=unknown,
        gate=gate,
        values=json_block(recorded.values | {"whole": recorded.sample.is_whole}),
        script="\n".join(asset("explorer", part) for part in _SCRIPTS),
    )


def _options(layers: Iterable[int]) -> str:
    return "".join(f'<option value="{n}">layer {n + 1}</option>' for n in layers)


def _answer(recorded: ModelRecord) -> str:
    name = recorded.dataset.name
    if recorded.test is not None:
        right, count = recorded.test
        share = f"{_percent(right, count)} of the {count:,} test nodes"
    elif recorded.labelled:
        share = _percent(recorded.right, recorded.labelled)
        share += f" of the {recorded.labelled:,} labelled nodes"
    else:
        return f"What {recorded.method} does at each node of {name}."
    return f"{recorded.method} classifies {share} of {name} correctly."


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}\N{NO-BREAK SPACE}%"


def _limits(recorded: ModelRecord) -> str:
    """What the page holds and what it computes, as list items."""
    sample = recorded.sample
    lines = []
    if sample.is_whole:
        lines.append(f"The page holds the whole graph: {recorded.num_nodes:,} nodes.")
    else:
        shown = int(sample.shown.sum())
        near = f"{sample.nodes.size(0):,} nodes within {len(recorded.values['layers'])}"
        lines.append(
            f"The page holds {shown:,} of {recorded.num_nodes:,} nodes, drawn at "
            f"random (wrongly and rightly classified ones in turn), with all {near} "
            "hops of them, so that what it shows of them is exact."
        )
        if sample.left_out:
            lines.append(
                f"{sample.left_out:,} nodes that were drawn have too many others near "
                "them and were left out."
            )
    if recorded.why_not_exact is None:
        lines.append(
            "Attention weights, gates and predictions are computed in this page, "
            "through all layers, at the temperatures that you choose."
        )
    else:
        lines.append(
            "The temperature changes the attention weights of the chosen layer only. "
            "Predictions and later layers stay those of the learned temperatures, "
            f"because {recorded.why_not_exact}."
        )
    if not recorded.is_training_graph:
        lines.append(
            "This is not the graph that the model was trained on, or it has another "
            "split, so the page does not say which nodes were used for training."
        )
    lines.append(
        "An attention weight says how much of a neighbour's features a layer takes; it "
        "is no proof that the neighbour is the reason for a prediction."
    )
    lines.append(
        "Layers and heads are counted from 1; nodes, classes, features and dimensions "
        "that have no name are counted from 0, as in Python."
    )
    return "".join(f"<li>{html.escape(line)}</li>" for line in lines)


def _legend(recorded: ModelRecord) -> str:
    items = "".join(
        f'<li><span class="key k{place % 8}">{place}</span> '
        f"{html.escape(name if name != str(place) else f'class {name}')}</li>"
        for place, name in enumerate(recorded.values["classes"])
    )
    if recorded.labelled < recorded.num_nodes:
        items += '<li><span class="key unknown">?</span> class not known</li>'
    return f'<ul class="legend">{items}</ul>'
