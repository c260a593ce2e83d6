"""A recipe with any content is used, or refused in one short line."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from tempergat.comparison.options import CompareOptions
from tempergat.comparison.plan import make_plan
from tests.fuzz.harness import fuzz, run_callable
from tests.fuzz.mutations import mutated_bytes, mutated_text, mutated_value
from tests.support.tiny_graph import write_recipe

METHODS = ["gcn", "gat", "temp_gated"]


@pytest.mark.slow
def test_a_recipe_is_used_or_refused_in_one_line(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "recipe.yaml")
    text = recipe.read_text()
    values = yaml.safe_load(text)

    def attempt(rng: np.random.Generator) -> bool:
        match int(rng.integers(4)):
            case 0:
                content = mutated_bytes(text.encode(), rng, most=1)
            case 1:
                content = mutated_text(text, rng, " :\n", most=2).encode()
            case 2:
                content = _with_aliases(text, rng).encode()
            case _:
                changed = mutated_value(values, rng, most=2)
                content = yaml.dump(changed, Dumper=yaml.SafeDumper).encode()
        recipe.write_bytes(content)
        return run_callable(make_plan, CompareOptions("cora", METHODS, 2, recipe))

    fuzz(800, attempt, more_than=20)


def _with_aliases(text: str, rng: np.random.Generator) -> str:
    """The recipe with a nest of aliases or merge keys in front, used or not."""
    width, depth = int(rng.integers(1, 12)), int(rng.integers(1, 12))
    merge = bool(rng.integers(2))
    lines = ["bomb0: &b0 {epochs: 1}" if merge else "bomb0: &b0 [1]"]
    for level in range(1, depth):
        inner = ", ".join([f"*b{level - 1}"] * width)
        value = f"{{<<: [{inner}]}}" if merge else f"[{inner}]"
        lines.append(f"bomb{level}: &b{level} {value}")
    if rng.integers(2):
        text = text.replace("epochs: 8", f"epochs: *b{depth - 1}", 1)
    return "\n".join([*lines, text])
