"""The explorer as a section of a page, or as a page by itself."""

from __future__ import annotations

import html

from tempergat.comparison.explorer.model_record import ModelRecord, record
from tempergat.comparison.html_report.page import page_html, rendered
from tempergat.data import GraphInput
from tempergat.training import TrainedModel


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
    return rendered(
        "explorer/explorer.html",
        method=recorded.method,
        dataset=recorded.dataset.name,
        answer=_answer(recorded),
        page=recorded,
        nodes=f"{recorded.num_nodes:,}",
        shown=f"{int(recorded.sample.shown.sum()):,}",
        layers=layers,
        gated=[number for number, layer in enumerate(layers) if layer["gate"]],
        # Where predictions are computed, their bars name the classes.
        is_exact=recorded.why_not_exact is None,
        classes=recorded.values["classes"],
        has_unknown=recorded.labelled < recorded.num_nodes,
        values=recorded.values | {"whole": recorded.sample.is_whole},
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
