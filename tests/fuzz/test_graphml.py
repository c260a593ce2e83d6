"""GraphML with any content is read, or refused in one short line."""

from pathlib import Path

import networkx
import numpy as np
import pytest

from tempergat.data import ReadOptions, as_dataset
from tests.fuzz.harness import fuzz, run_callable, run_command
from tests.fuzz.mutations import mutated_bytes, mutated_text, pick

OPTIONS = (
    {},
    {"id": "name"},
    {"drop": ("name", "weight")},
    {"features": ("height",), "edge_features": ("weight",)},
    {"label": "name", "fill": "flag", "drop_unknown_edges": True},
)


def graphml() -> str:
    graph = networkx.cycle_graph(12)
    for node in graph:
        word = "cat" if node % 2 else "dog"
        graph.add_node(node, name=f"P{node}", height=node / 4, label=word)
    networkx.set_edge_attributes(graph, 1.5, "weight")
    return "\n".join(networkx.generate_graphml(graph))


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_graphml_is_read_or_refused_in_one_line(tmp_path: Path, count: int) -> None:
    path, text = tmp_path / "g.graphml", graphml()

    def attempt(rng: np.random.Generator) -> bool:
        if rng.integers(3):
            content = mutated_text(text, rng, '<>" \n', most=2).encode(
                "utf-8", "replace"
            )
        else:
            content = mutated_bytes(text.encode(), rng, most=2)
        path.write_bytes(content)
        run_command("data", "check", path)
        options = ReadOptions(**{"drop": ("name",), **pick(rng, OPTIONS)})
        return run_callable(as_dataset, path, options=options)

    fuzz(count, attempt, more_than=count // 20)
