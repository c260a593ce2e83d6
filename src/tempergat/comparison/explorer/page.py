"""The explorer as a section of a page, or as a page by itself."""

from __future__ import annotations

import html

from tempergat.comparison.explorer.model_record import ModelRecord, record
from tempergat.comparison.html_report.page import asset, json_block, page_html
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
    name = html.escape(f"Explorer of {recorded.method} on {recorded.dataset.name}")
    script = "\n".join(asset("explorer", part) for part in _SCRIPTS)
    values = recorded.values | {"whole": recorded.sample.is_whole}
    return (
        f"<style>\n{asset('explorer', 'explorer.css')}</style>\n"
        f'<section class="explorer" aria-label="{name}">\n'
        f'<p class="answer">{html.escape(_answer(recorded))}</p>\n'
        '<details class="limits"><summary>About</summary>'
        f"<ul>{_limits(recorded)}</ul></details>\n"
        f"{_SEARCH}{_temperature(recorded)}{_node(recorded)}{_HEADS}{_gate(recorded)}"
        f"{json_block(values)}\n</section>\n"
        f'<script>\n"use strict";\n(() => {{\n{script}}})();\n</script>'
    )


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


_SEARCH = """<div class="tools" role="search">
<label>Search <input type="search" data-at="find" placeholder="node id or class" autocomplete="off" spellcheck="false"></label>
<label>Go through <select data-at="among"><option value="test">wrong test nodes</option><option value="all">all wrong nodes</option></select></label>
<button type="button" data-go="back">← previous wrong</button>
<button type="button" data-go="next">next wrong →</button>
<button type="button" data-go="random">random node</button>
</div>
<p class="said" role="status" data-at="said"></p>
<div class="found" data-at="found"></div>
"""  # noqa: E501


def _temperature(recorded: ModelRecord) -> str:
    layers = "".join(
        f'<option value="{number}">layer {number + 1}</option>'
        for number in range(len(recorded.values["layers"]))
    )
    return (
        '<div class="warmth">'
        f'<label>Layer <select data-at="layer">{layers}</select></label>'
        '<label>Head <select data-at="head"></select></label>'
        '<label class="wide"><span>Temperature of this layer: '
        '<strong data-at="value"></strong></span>'
        '<input type="range" data-at="temperature" min="-4" max="4" step="0.02" '
        'value="0"></label>'
        '<button type="button" data-go="reset">reset to the learned temperatures'
        "</button></div>\n"
        '<p class="note" data-at="score" role="status"></p>\n'
    )


def _node(recorded: ModelRecord) -> str:
    # Where predictions are computed, their bars name the classes.
    legend = "" if recorded.why_not_exact is None else _legend(recorded)
    unknown = ""
    if recorded.labelled < recorded.num_nodes:
        unknown = "Dashed, with a question mark: class not known. "
    return (
        '<div class="pair"><figure class="figure" data-name="node">'
        '<h3 data-at="title"></h3><div data-at="star"></div>'
        f"{legend}"
        "<figcaption>Width and number at an edge: attention weight. Ring: attention "
        "weight of the node to itself. Colour and number in a node: its true class. "
        f"{unknown}Cross: classified wrongly. Choose a neighbour to go there. "
        '<span data-at="left"></span></figcaption>'
        '<p class="buttons"><button type="button" data-save="svg">Save SVG</button> '
        '<button type="button" data-save="png">Save PNG</button></p></figure>\n'
        '<div><h3>Prediction <span data-at="verdict"></span></h3>'
        '<p data-at="about"></p><p class="hidden" role="status" data-at="spoken"></p>'
        '<div data-at="classes"><ul class="bars" data-at="bars"></ul>'
        '<p class="note">Probability of each class; the line is the value at the '
        "learned temperatures.</p></div></div></div>\n"
        "<details><summary>All neighbours as a table</summary>"
        '<div class="scroll" tabindex="0" role="group" aria-label="All neighbours">'
        "<table><thead><tr><th>Neighbour</th><th>Class</th><th>Attention weight, "
        "learned</th><th>Attention weight, now</th></tr></thead>"
        '<tbody data-at="rows"></tbody></table>'
        '</div><p class="note" data-at="cut"></p></details>\n'
    )


def _legend(recorded: ModelRecord) -> str:
    items = "".join(
        f'<li><span class="key k{place % 8}">{place}</span> '
        f"{html.escape(name if name != str(place) else f'class {name}')}</li>"
        for place, name in enumerate(recorded.values["classes"])
    )
    if recorded.labelled < recorded.num_nodes:
        items += '<li><span class="key unknown">?</span> class not known</li>'
    return f'<ul class="legend">{items}</ul>'


_HEADS = (
    "<h2>All layers and heads</h2>\n"
    '<p class="note">The same node as every head sees it. "3.1 of 7" means that '
    "the attention weights are as spread as over 3.1 equal edges of 7 (the exponential "
    "of their entropy), the self-loop counted. Choose a head to see it above.</p>\n"
    '<div data-at="heads"></div>\n'
)


def _gate(recorded: ModelRecord) -> str:
    layers = recorded.values["layers"]
    gated = [number for number, layer in enumerate(layers) if layer["gate"]]
    heading = "<h2>What the gate lets through</h2>\n"
    if not gated:
        words = f"{recorded.method} has no gate."
        return f'{heading}<p class="note">{html.escape(words)}</p>\n'
    options = "".join(
        f'<option value="{number}">layer {number + 1}</option>' for number in gated
    )
    return (
        f"{heading}"
        '<p class="note">A gate multiplies each dimension of a layer by a number from '
        "0 (closed) to 1 (open). The stronger the colour of a field, the more open the "
        "gate on average over the nodes "
        '<span data-at="heat-classes"></span>. '
        '<span data-at="heat-range"></span> '
        "Choose a dimension in the map or by its number.</p>\n"
        f'<div class="tools"><label>Layer <select data-at="gate-layer">{options}'
        "</select></label>"
        '<label>Dimension, from 0 <input type="number" data-at="dimension" min="0" '
        'step="1"></label></div>\n'
        '<div class="scroll heat-map" tabindex="0" role="group" '
        'aria-label="Mean gate by class and dimension" data-at="heat"></div>'
        '<p class="note" data-at="dimensions-note"></p>'
        '<p data-at="gate-words" role="status"></p>\n'
        '<div class="gate"><div><h4>The gate of this dimension at all nodes</h4>'
        '<div data-at="histogram"></div></div>'
        "<div><h4>Inputs that open it most, by weight</h4>"
        '<ul data-at="opens"></ul><h4>Inputs that close it most</h4>'
        '<ul data-at="closes"></ul></div></div>\n'
    )
