"""The choice of the recipe that goes with a graph."""

from pathlib import Path

from tempergat.base.errors import UserError
from tempergat.data import Dataset
from tempergat.data.catalog.entries import find_entry
from tempergat.training.config import Recipe, load_recipe, recipe_names


def recipe_for(
    graph: object, recipe: str | Path | Recipe | None = None
) -> tuple[str, Recipe]:
    """The recipe to train with, and its name.

    Args:
        graph: A dataset or its name; anything else has the default recipe.
        recipe: A recipe, its name or its file; None for the paper's recipe of the
            dataset where there is one.

    Raises:
        UserError: There is no such recipe, or it asks for sampled training.
    """
    if isinstance(recipe, Recipe):
        name, chosen = "given", recipe
    else:
        name = _name_for(graph) if recipe is None else str(recipe)
        chosen = load_recipe(name)
    if chosen.training != "full":
        raise UserError(
            f"recipe {name} says training: {chosen.training}, but training is "
            "full-batch here; give a recipe with training: full, like default"
        )
    return name, chosen


def _name_for(graph: object) -> str:
    if isinstance(graph, Dataset):
        graph = graph.name
    if not isinstance(graph, str):
        return "default"
    try:
        name = find_entry(graph).name.replace("_", "-")
    except UserError:
        # A path, or a name whose mistake is reported when the graph is loaded.
        return "default"
    known = recipe_names()
    return next((r for r in (f"paper/{name}", name) if r in known), "default")
