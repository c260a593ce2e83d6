"""Sections of a report made of made-up runs."""

from dataclasses import replace

from tempergat.comparison.html_report.section import Published, Section
from tempergat.comparison.report.tables import result_table
from tempergat.comparison.results import dataset_result
from tempergat.training import LayerRecord, Run
from tests.support.made_up_runs import METHODS, study

CONFUSION = {
    "gcn": ((8, 2), (5, 5)),
    "gat": ((9, 1), (4, 6)),
    "gated": ((10, 0), (1, 9)),
}


def section(dataset: str = "cora", **fields: object) -> Section:
    """Three methods over eight seeds, of which gated is best by far."""
    runs = [
        _with_all(run)
        for run in study(dataset, {"gcn": 79.0, "gat": 80.0, "gated": 84.0}, range(8))
    ]
    result = dataset_result(runs, METHODS, "gat")
    made = Section(
        result=result,
        runs=runs,
        answer=f"gated is best on {dataset}",
        table=result_table(result),
        recipe="default",
        baseline="gat",
        class_names=("first", "second"),
        command=f"tempergat compare {dataset}",
        published={"gat": Published(81.0, 0.5, 50)},
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def hostile_section() -> Section:
    """A section whose graph and classes have markup in their names."""
    return section(
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
