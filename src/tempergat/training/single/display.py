"""A trained model as a notebook shows it."""

import html
from collections.abc import Sequence

from tempergat.training.record import Run


def model_html(run: Run, inputs: str, outcome: str) -> str:
    """A table of what the model is and what it has learned, without style sheets.

    Args:
        run: The record of the run.
        inputs: What the model takes and gives, in words.
        outcome: How the run ended, in words.
    """
    rows = {
        "graph": run.dataset,
        "size": inputs,
        "parameters": "" if run.parameter_count is None else f"{run.parameter_count:,}",
        "result": outcome,
        "temperature of each layer": _listed(run.selected.temperatures),
        "mean gate of each layer": _listed(run.selected.gate_means),
        "device": run.device,
    }
    body = "".join(
        f'<tr><th style="text-align: left">{name}</th>'
        f'<td style="text-align: left">{html.escape(value)}</td></tr>\n'
        for name, value in rows.items()
        if value
    )
    return (
        f"<table>\n<caption><strong>{html.escape(run.method)}</strong>, "
        f"seed {run.seed}</caption>\n<tbody>\n{body}</tbody>\n</table>\n"
    )


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)
