"""What a report gets of a comparison."""

from dataclasses import replace

import pytest

from tempergat.comparison.comparison import Comparison
from tempergat.comparison.paper import read_paper
from tempergat.comparison.results import dataset_result
from tests.support.made_up_runs import METHODS, study


def compared(dataset: str, metric: str = "accuracy") -> Comparison:
    runs = study(dataset, {"gat": 80.0, "gated": 81.0}, range(3))
    result = dataset_result(runs, METHODS, "gat", metric)
    return Comparison(result, runs, "gat", "default", "cpu", True)


def test_the_papers_scores_are_those_of_its_table() -> None:
    published = compared("cora").section().published
    assert list(published) == ["gat", "gated"]
    cell = read_paper()["cora"]["gated"]
    assert published["gated"] == (cell.mean, cell.std, cell.runs)


def test_another_graph_with_the_name_of_a_dataset_has_none_either() -> None:
    found = compared("cora")
    two_classes = tuple(
        replace(row, confusion=((5, 1), (1, 5))) for row in found.result.results
    )
    result = replace(found.result, results=two_classes)
    assert replace(found, result=result).section().published == {}


@pytest.mark.parametrize(
    ("dataset", "metric"), [("my_graph", "accuracy"), ("cora", "macro_f1")]
)
def test_other_graphs_and_metrics_have_no_scores_of_the_paper(
    dataset: str, metric: str
) -> None:
    assert compared(dataset, metric).section().published == {}
