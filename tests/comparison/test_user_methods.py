"""A user's own modules are in the table with the same statistics."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import tempergat
from tempergat.base import UserError
from tempergat.data import csbm
from tests.support.tiny_graph import write_recipe


class MeanOfNeighbours(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.own = nn.Linear(in_channels, out_channels)
        self.neighbours = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index
        total = torch.zeros_like(x).index_add_(0, target, x[source])
        degree = torch.bincount(target, minlength=x.size(0)).clamp(min=1)
        return self.own(x) + self.neighbours(total / degree.unsqueeze(1))


def linear(in_channels: int, out_channels: int) -> nn.Module:
    class Linear(nn.Linear):
        def forward(self, x: Tensor, edge_index: Tensor | None = None) -> Tensor:
            return super().forward(x)

    return Linear(in_channels, out_channels)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_recipe(tmp_path / "recipe.yaml")


def test_a_callable_is_compared_under_its_name(recipe: Path) -> None:
    data = csbm(n=60, d=8).data
    found = tempergat.compare(
        data,
        ["gat", MeanOfNeighbours, linear, "mlp"],
        *(3, recipe),
        device="cpu",
        progress=False,
    )
    names = ["gat", "MeanOfNeighbours", "linear", "mlp"]
    rows = found.table[:-1]
    assert [row["method"] for row in rows] == names
    assert [row["baseline"] for row in rows] == [None, None, None, None]
    assert [row["runs"] for row in rows] == [3, 3, 3, 3]
    assert all(run.config.get("source_hash") for run in found.runs[3:9])
    assert len(found.plot().axes[0].get_yticklabels()) == 4
    assert ">MeanOfNeighbours</td>" in found._repr_html_()


def test_a_mapping_names_callables_and_runs_are_stored(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = csbm(n=60, d=8).data
    arguments = {"runs": 2, "recipe": recipe, "device": "cpu", "out": tmp_path / "out"}
    first = tempergat.compare(data, {"mine": linear}, baseline="gat", **arguments)
    assert first.result.methods == ("gat", "mine")
    capsys.readouterr()
    again = tempergat.compare(data, {"mine": linear}, baseline="gat", **arguments)
    assert "4 of 4 runs are there already" in capsys.readouterr().err
    assert again.to_csv() == first.to_csv()
    other = tempergat.compare(
        data, {"mine": MeanOfNeighbours}, baseline="gat", **arguments
    )
    assert "2 of 4 runs are there already" in capsys.readouterr().err
    assert other.table[1]["mean"] != first.table[1]["mean"]


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({"gat": linear}, "gat is a built-in method; call yours by another name"),
        ([linear, lambda i, o: linear(i, o), lambda i, o: linear(o, i)], "two methods"),
        ([3], "a method is 3; give a name or a callable"),
    ],
)
def test_names_that_cannot_be_used_are_refused(methods: object, words: str) -> None:
    with pytest.raises(UserError, match=words):
        tempergat.compare("demo", methods, runs=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("faulty", "words"),
    [
        (
            lambda inputs, outputs: linear(inputs, outputs + 1),
            r"returned a .* \[60, 3\]",
        ),
        (lambda inputs: linear(inputs, 2), r"called as faulty\(in_channels, out_chan"),
    ],
    ids=["wrong width", "wrong arguments"],
)
def test_a_faulty_module_is_refused_before_other_methods_train(
    recipe: Path, faulty: object, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    methods = {"mean": MeanOfNeighbours, "faulty": faulty}
    with pytest.raises(UserError, match=words):
        tempergat.compare(csbm(n=60, d=8).data, methods, 2, recipe, device="cpu")
    assert "mean:" not in capsys.readouterr().err
