"""Values of a run at further moments than the selected epoch, as columns of the CSV.

A moment is a fixed epoch or the name of a selection rule, whose epoch each run has by
itself. Values have five digits, which is far below the differences between seeds.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tempergat.training import SELECTION_RULES, LayerRecord, Run, Scores

Moment = int | str
# The epoch that the configured rule selects.
SELECTED = "selected"
# The name of a quantity in the CSV and on the page, and that in a run's record.
LAYER_QUANTITIES = {
    "temperature": "temperatures",
    "gate": "gate_means",
    "spread": "spread",
    "entropy": "entropy",
}
_SCORE_FIELDS = ("epoch", "train", "val", "test")
_COLUMN = re.compile(r"(?P<quantity>[a-z]+)_(?P<layer>\d+)_at_(?P<moment>\w+)")


def layer_values(
    run: Run, quantity: str, moment: Moment = SELECTED
) -> tuple[float, ...]:
    """One value per layer; none where the run has no such quantity or moment.

    Args:
        run: The run.
        quantity: A key of `LAYER_QUANTITIES`.
        moment: A fixed epoch, a selection rule, or `selected`.
    """
    record: LayerRecord | None = run.selected
    if moment != SELECTED:
        at_epochs = run.layers_at_epochs or {}
        if isinstance(moment, str):
            moment = run.scores[moment].epoch if moment in run.scores else 0
        record = at_epochs.get(moment)
    values: tuple[float, ...] = ()
    if record is not None:
        values = getattr(record, LAYER_QUANTITIES[quantity])
    return values


def further_cells(run: Run, depth: int, epochs: Sequence[int]) -> dict[str, Any]:
    """The columns of a run's scores by every rule and its values at every moment.

    Args:
        run: The run.
        depth: The number of layers of the deepest run in the file.
        epochs: The fixed epochs.
    """
    row: dict[str, Any] = {}
    for rule in SELECTION_RULES:
        scores = run.scores.get(rule)
        for name in _SCORE_FIELDS:
            cell = "" if scores is None else f"{getattr(scores, name):.7g}"
            row[f"{name}_by_{rule}"] = cell
    moments: list[Moment] = [*epochs, *SELECTION_RULES]
    for quantity in LAYER_QUANTITIES:
        for layer in range(depth):
            for moment in moments:
                values = layer_values(run, quantity, moment)
                cell = f"{values[layer]:.5g}" if layer < len(values) else ""
                row[f"{quantity}_{layer + 1}_at_{moment}"] = cell
    return row


def further_scores(row: Mapping[str, str]) -> dict[str, Scores]:
    """The scores of a row by each selection rule; none without fixed epochs."""
    return {
        rule: Scores(
            int(row[f"epoch_by_{rule}"]),
            *(float(row[f"{name}_by_{rule}"]) for name in _SCORE_FIELDS[1:]),
        )
        for rule in SELECTION_RULES
        if row.get(f"epoch_by_{rule}")
    }


def further_layers(row: Mapping[str, str]) -> dict[int, LayerRecord] | None:
    """The learned values of a row at further epochs; None where there are none."""
    found: dict[int, dict[str, list[float]]] = {}
    # The columns of a quantity are in the order of its layers.
    for name, cell in row.items():
        match = _COLUMN.fullmatch(name)
        if match is None or not cell:
            continue
        moment = match["moment"]
        epoch = int(moment if moment.isdigit() else row[f"epoch_by_{moment}"])
        attribute = LAYER_QUANTITIES[match["quantity"]]
        values = found.setdefault(epoch, {}).setdefault(attribute, [])
        if len(values) < int(match["layer"]):
            values.append(float(cell))
    if not found:
        return None
    return {
        epoch: LayerRecord(**{name: tuple(v) for name, v in values.items()})
        for epoch, values in sorted(found.items())
    }
