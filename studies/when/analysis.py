"""What the runs show; the contrast `residual-plain` is an arm minus another."""

from functools import cache

import pandas as pd

from studies.results import read_plan, read_runs
from studies.when.arms import ARMS
from studies.when.study import grid
from tempergat.stats import ALPHA, compare_pairs, equivalence_p, holm, wilcoxon_p

PLAN = read_plan("when")
BACKBONES: list[str] = PLAN["backbones"]
CONTRASTS = [f"{pair['arm']}-{pair['against']}" for pair in PLAN["contrasts"]]
CHANCE = 1.0 / PLAN["generated"]["classes"]
THRESHOLD: float = PLAN["rule"]["threshold"]
# Points of validation score below the median of a run's arm, graph and backbone.
FAILED = 20.0
_REAL = pd.DataFrame(PLAN["real"]["graphs"]).set_index("name")
# Test nodes per training node on graphs with several splits, which overlap.
TEST_TO_TRAIN: dict[str, float] = _REAL["test_to_train"].dropna().to_dict()
# The backbone and the arm of runs, by their method, residual and control.
_CASES = {
    (arm.method_on(backbone), arm.residual, arm.control or ""): (backbone, name)
    for name, arm in ARMS.items()
    for backbone in BACKBONES
}


@cache
def runs() -> pd.DataFrame:
    """All runs, how far each is below the median of its arm, and whether it failed."""
    stages = ("generated", "real")
    found = pd.concat([read_runs(f"when/{s}.csv").assign(stage=s) for s in stages])
    found = found.rename(columns={"dataset": "graph"}).reset_index(drop=True)
    found = found.round({"val": 4, "test": 4})  # Equal scores tie, as in `families`.
    found["change"] = found["change"].fillna("")
    keys = found[["method", "residual", "change"]].itertuples(index=False, name=None)
    found[["backbone", "arm"]] = [_CASES[key] for key in keys]
    median = found.groupby(["graph", "backbone", "arm"])["val"].transform("median")
    shortfall = median - found["val"]
    return found.assign(shortfall=shortfall, failed=shortfall > FAILED)


@cache
def scores() -> pd.DataFrame:
    """Test scores by backbone, graph and seed, with a column for each arm."""
    return runs().set_index(["backbone", "graph", "seed", "arm"])["test"].unstack()


@cache
def graphs(kind: str) -> pd.Series:
    """Homophily of a kind of graphs, or of one real graph; on real graphs, adjusted."""
    made = pd.Series({name: graph["homophily"] for name, graph in grid().items()})
    made, real = made.sort_values(), _REAL["adjusted_homophily"].sort_values()
    kinds = {
        "generated": made,
        "up_to_chance": made[made <= CHANCE],
        "above_chance": made[made > CHANCE],
        "real": real,
        "below": real[real < THRESHOLD],
        "above": real[real >= THRESHOLD],
    }
    return kinds[kind] if kind in kinds else real[[kind]]


def pairs(backbone: str, contrast: str) -> pd.Series:
    """Differences of two arms, by graph and seed."""
    arm, against = contrast.split("-")
    return scores()[arm][backbone] - scores()[against][backbone]


@cache
def families(kind: str, backbone: str, contrast: str) -> pd.Series:
    """Mean differences of two arms by family; a generated graph is its own."""
    of_graphs = pairs(backbone, contrast).groupby("graph").mean()[graphs(kind).index]
    by_family = of_graphs.groupby(lambda graph: _REAL["family"].get(graph, graph))
    return by_family.mean().round(9)  # Equal means tie, whatever their last bits.


@cache
def verdicts() -> pd.DataFrame:
    """What paired tests within a graph show, by backbone, graph and contrast.

    Where splits overlap the tests are those of Nadeau and Bengio.
    """
    found = {}
    for (backbone, graph), of_case in scores().groupby(["backbone", "graph"]):
        arms: dict[str, dict[int, float]] = of_case.droplevel([0, 1]).to_dict()
        arms |= {c: arms[c.split("-")[0]] for c in CONTRASTS}
        against = {contrast: contrast.split("-")[1] for contrast in CONTRASTS}
        tests = compare_pairs(arms, against, TEST_TO_TRAIN.get(graph, 0.0))
        found[backbone, graph] = {test.method: test.verdict for test in tests}
    return pd.DataFrame(found).T


def count(verdict: str, kind: str, backbone: str, contrast: str) -> int:
    """On how many graphs of a kind a contrast has a verdict."""
    return int((verdicts()[contrast][backbone][graphs(kind).index] == verdict).sum())


@cache
def across(kind: str, backbone: str) -> pd.DataFrame:
    """The plan's tests over families, by contrast; `same`: within the bound of 0."""
    values = [families(kind, backbone, contrast) for contrast in CONTRASTS]
    bound = PLAN["bounds"]["equivalence"]
    same_p = [equivalence_p(v.mean(), v.sem(), len(v) - 1, bound) for v in values]
    found = pd.DataFrame({"points": [v.mean() for v in values]}, CONTRASTS)
    found["p"] = holm([wilcoxon_p(v) for v in values])
    found["better"] = (found["p"] < ALPHA) & (found["points"] > 0.0)
    found["worse"] = (found["p"] < ALPHA) & (found["points"] < 0.0)
    found["same"] = [p < ALPHA for p in same_p]
    return found


def rule_gains() -> pd.Series:
    """The plan's rule minus always a residual, by family; none is on both sides."""
    chosen = {"below": PLAN["rule"]["below"], "above": PLAN["rule"]["otherwise"]}
    return pd.concat(families(k, "gatv2", f"{a}-residual") for k, a in chosen.items())


@cache
def failed_seeds() -> pd.Series:
    """Seeds of the runs on real graphs that failed, by graph, backbone and arm."""
    failed = runs().query("failed and stage == 'real'")
    return failed.groupby(["graph", "backbone", "arm"])["seed"].agg(list)
