"""What a comparison is about when nothing else is said."""

from tempergat.comparison.plan import make_plan
from tempergat.nn import METHODS


def test_mlp_joins_the_papers_methods_but_for_runs_paper() -> None:
    papers = tuple(name for name, method in METHODS.items() if method.in_paper)
    assert len(papers) == 11
    assert make_plan("cora").methods == ("mlp", *papers)
    assert make_plan("cora", runs="paper").methods == papers
    assert make_plan("cora", ["mlp"], runs="paper").methods == ("mlp",)
