"""Comparisons made of made-up runs, with all that a report shows."""

from dataclasses import replace
from typing import Any

from tempergat.comparison.results.comparison import Comparison
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.training import LayerRecord, Run
from tests.support.made_up_runs import METHODS, study

CONFUSION = {
    "gcn": ((800, 200), (500, 500)),
    "gat": ((900, 100), (400, 600)),
    "gated": ((1000, 0), (100, 900)),
}


def comparison(
    dataset: str = "cora", seeds: int = 8, against: Any = "gat", **fields: Any
) -> Comparison:
    """Three methods of which gated is best by far; of all pairs without a baseline."""
    scores = {"gcn": 79.0, "gat": 80.0, "gated": 84.0}
    runs = [_with_all(run) for run in study(dataset, scores, range(seeds))]
    baseline = against if isinstance(against, str) else None
    result = dataset_result(runs, METHODS, against, all_pairs=baseline is None)
    made = Comparison(
        result,
        runs,
        baseline,
        "default",
        "cpu",
        complete=True,
        class_names=("first", "second"),
    )
    return replace(made, **fields)


def hostile_comparison() -> Comparison:
    """A comparison whose graph and classes have markup in their names."""
    return comparison(
        '"><img>', class_names=("<script>window.harmed=1</script>", "</script><b>")
    )


def _with_all(run: Run) -> Run:
    epochs = (1, 2, 3)
    return replace(
        run,
        parameter_count=1000 + 10 * len(run.method),
        curves={"epoch": epochs, "val": (0.5, 0.6, 0.7), "loss": (1.5, 1.0, 0.5)},
        layers_at_epochs={
            epoch: LayerRecord((1.0, 0.9), (0.5, 0.4)) for epoch in epochs
        },
        confusion=CONFUSION[run.method],
        gate_counts=((1, 2, 3, 4), (4, 3, 2, 1)) if run.method == "gated" else None,
    )
