"""Numbers of docs/ranks.md, computed again with scipy."""

import pandas as pd
import pytest
from scipy import stats

from studies.ranks import tables
from studies.results import runs_path
from tempergat.comparison.paper import BACKBONE_OF, read_paper

CELLS = pd.DataFrame(cell for of in read_paper().values() for cell in of.values())
MEANS = CELLS.pivot(index="dataset", columns="method", values="mean")
FIRST = "best_val_accuracy"


@pytest.mark.parametrize("which", tables.RANKINGS)
def test_means_are_ranked_and_tested(which: str) -> None:
    if which in tables.IN_PAPER:
        means = MEANS.loc[list(tables.IN_PAPER[which][1])]
    else:
        study = "heterogeneous" if which == "proxy" else "homogeneous"
        runs = pd.read_csv(runs_path(f"{study}/runs.csv")).query("method != 'mlp'")
        score = f"{FIRST if which == 'proxy' else which}_test"
        means = runs.pivot_table(score, "dataset", "method").round(9)
    found = tables.ranked(which)
    ranks = means.rank(axis=1, ascending=False).mean()
    assert found.average == pytest.approx(ranks.to_dict())
    p = stats.friedmanchisquare(*(means[method] for method in means)).pvalue
    assert found.friedman_p == pytest.approx(p)


def test_every_variant_below_its_backbone_is_counted() -> None:
    below = {
        (dataset, method)
        for method, backbone in BACKBONE_OF.items()
        for dataset in MEANS.index
        if MEANS[method][dataset] < MEANS[backbone][dataset]
    }
    assert set(tables.below()) == below
    assert sum(len(tables.below(kind)) for kind in tables.KINDS.values()) == len(below)


def test_what_the_page_says_in_words_is_what_the_tables_give() -> None:
    alone, gate, both, _ = tables.KINDS.values()
    assert 2 * len(tables.below(alone)) == 22
    on_pubmed = [
        dataset == "pubmed"
        for kind in (gate, both)
        for dataset, _ in tables.below(kind)
    ]
    assert sum(on_pubmed) > len(on_pubmed) / 2
    paper, ours = tables.ranked("all"), tables.ranked(FIRST)
    best, *_, worst = paper.average
    assert (best, worst) == ("temp_gated_v2", "gcn")
    assert {name for name, of in ours.ranks.items() if of["gcn"] == 1} == {
        "cora",
        "pubmed",
    }
