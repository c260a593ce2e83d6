"""`tempergat doctor`, `methods` and `recipe` list what there is."""

from importlib import metadata
from pathlib import Path

import pytest
import torch

from tempergat.nn.methods import METHODS
from tempergat.ops import Graph, explain
from tempergat.ops.cpu import library as kernels
from tempergat.training import recipe_names
from tests.cli.conftest import Command


def test_versions_devices_and_kernels_are_printed(command: Command) -> None:
    ended = command("doctor")
    assert ended.status == 0
    assert f"torch            {metadata.version('torch')}" in ended.out
    assert "cpu: " in ended.out
    assert "attention is computed by" in ended.out


def test_json_names_the_backend_that_serves_the_cpu(command: Command) -> None:
    found = command.facts("doctor")
    cpu = found["devices"][0]
    graph = Graph(torch.tensor([[0], [1]]), 2)
    choice = explain(graph, torch.zeros(2, 8, 8))
    assert cpu["device"] == "cpu"
    assert cpu["backend"] == choice.backend
    assert cpu["refused"].get("cpu") == choice.refused.get("cpu")
    assert found["versions"]["torch"] == metadata.version("torch")


def test_without_kernels_it_says_why_and_how_to_get_them(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "library", kernels.Library(tmp_path / "_cpu.so"))
    ended = command("doctor")
    assert ended.status == 0
    assert "attention is computed by the reference" in ended.out
    assert "_cpu.so was not built; with a C++ compiler" in ended.out
    assert "`python -m tempergat.ops.cpu.build`" in ended.out
    assert "Warning" not in ended.err


def test_without_a_gpu_it_says_why(command: Command) -> None:
    found = command.facts("doctor")
    if torch.cuda.is_available():
        assert found["no_cuda"] is None
        assert found["devices"][1]["device"] == "cuda:0"
    else:
        assert torch.__version__ in found["no_cuda"]


def test_every_method_has_a_row(command: Command) -> None:
    rows = command("methods").out.splitlines()
    for name, method in METHODS.items():
        (row,) = [row for row in rows if row.split()[:1] == [name]]
        assert method.description in row
        assert row.endswith("yes" if method.in_paper else "no")


def test_json_holds_the_same_methods(command: Command) -> None:
    found = command.facts("methods")["methods"]
    assert [row["method"] for row in found] == list(METHODS)
    assert found[5] == {
        "method": "temp_gated",
        "description": "GAT + temperature + gate after attention",
        "backbone": "gat",
        "temperature": "layer",
        "gate": "post",
        "in_paper": True,
    }


def test_a_recipe_is_printed_to_copy_with_what_the_paper_leaves_open(
    command: Command, graph: Path
) -> None:
    assert command("recipe").out.split() == recipe_names()
    printed = command("recipe", "ogbn-mag").out
    assert printed.startswith("# Expected scores: not known")
    assert "\n  num_layers: 4\n" in printed
    assert "act: relu                     # unstated: H2GB's configuration" in printed
    Path("mine.yaml").write_text(command("recipe", "plain").out)
    options = ("--methods", "gat", "--runs", 1, "--epochs", 1)
    ended = command("compare", graph, "--recipe", "mine.yaml", *options)
    assert ended.status == 0
    command.refuses("did you mean cora", "recipe", "corra")
    Path("wrong.yaml").write_text("extends: plain\nattention: {epoch: 3}")
    command.refuses("attention.epoch: no such setting", "recipe", "wrong.yaml")


def test_what_an_old_version_of_torch_does_less_well_is_said(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempergat.ops.LIMITS", ("torch.export needs strict=False",))
    line = f"torch {metadata.version('torch')}: torch.export needs strict=False"
    assert line in command("doctor").out
