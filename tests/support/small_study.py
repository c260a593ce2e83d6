"""A small study under the name of a published one: tiny graphs, short runs."""

from pathlib import Path

import pytest
import torch

from tempergat.data import Dataset, csbm
from tempergat.study.reproduce import Workspace, pages
from tempergat.training import Recipe, load_recipe
from tests.support.tiny_graph import write_recipe

RESULTS = Path(__file__).parents[2] / "results"
RUNS = 4


def tiny_cora(name: str = "cora") -> Dataset:
    graph = csbm(n=60, a=10.0, b=4.0, d=8, mu=2.0)
    return Dataset(**(vars(graph) | {"name": name}))


def make_small(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let the page of the paper's first table need short runs on cora and pubmed."""
    recipe = load_recipe(write_recipe(folder / "small.yaml"))

    def small_recipe(name: str) -> Recipe:
        return recipe

    monkeypatch.setattr(pages, "load_recipe", small_recipe)
    monkeypatch.setattr(pages, "HOMOGENEOUS", ("cora", "pubmed"))


def workspace(folder: Path, out: str = "out") -> Workspace:
    return Workspace(
        folder / "results", folder / out, torch.device("cpu"), load=tiny_cora
    )
