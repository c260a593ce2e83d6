"""Numbers of docs/ranks.md, computed again with scipy from the paper's tables."""

import pandas as pd
import pytest
from scipy import stats

from studies.ranks import tables
from tempergat.comparison.paper import read_paper

CELLS = pd.DataFrame(cell for of in read_paper().values() for cell in of.values())


@pytest.mark.parametrize("which", tables.DATASETS)
def test_the_papers_means_are_ranked_and_tested(which: str) -> None:
    means = CELLS.pivot(index="dataset", columns="method", values="mean")
    means = means.loc[list(tables.DATASETS[which])]
    found = tables.ranked(which)
    ranks = means.rank(axis=1, ascending=False).mean()
    assert found.average == pytest.approx(ranks.to_dict())
    p = stats.friedmanchisquare(*(means[method] for method in means)).pvalue
    assert found.friedman_p == pytest.approx(p)


def test_every_variant_below_its_backbone_is_listed() -> None:
    means = CELLS.set_index(["dataset", "method"])["mean"]
    expected = {
        (dataset, method)
        for dataset, method in means.index
        if method not in ("gcn", "gat", "gatv2")
        and means[dataset, method]
        < means[dataset, "gatv2" if method.endswith("_v2") else "gat"]
    }
    assert set(tables.tests_below()) == expected
