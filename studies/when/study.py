"""Every arm on generated graphs with one setting, and on real graphs after a search."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from statistics import fmean

from studies.results import read_plan
from studies.runner import Stage, Stages
from studies.when.arms import ARMS
from tempergat.base import UserError
from tempergat.data import Dataset, csbm, load_splits, mirror_folders
from tempergat.training import Run, RunConfig

PLAN = read_plan("when")
GENERATED, REAL = PLAN["generated"], PLAN["real"]
_REAL_GRAPHS = {graph["name"]: graph for graph in REAL["graphs"]}
GRAPHS = ("generated", *_REAL_GRAPHS)


def stages(graph: str) -> Stages:
    """Every arm on all generated graphs, or on one real graph after its search."""
    names = grid() if graph == "generated" else [graph]
    for name, backbone, arm in product(names, PLAN["backbones"], PLAN["arms"]):
        run = generated_arm if graph == "generated" else real_arm
        yield from run(name, arm, backbone)


def generated_arm(graph: str, arm: str, backbone: str) -> Stages:
    """The runs of an arm on a generated graph, with the setting of all of them."""
    setting = RunConfig(method="gat", **GENERATED["settings"])
    yield Stage(
        "when/generated.csv",
        graph,
        [ARMS[arm].config(setting, backbone)],
        GENERATED["seeds"],
        generate,
        ARMS[arm].preparation,
    )


def real_arm(graph: str, arm: str, backbone: str) -> Stages:
    """The search of an arm on a real graph, and its runs with the chosen setting."""
    search = Stage(
        "when/search.csv",
        graph,
        [ARMS[arm].config(setting, backbone) for setting in searched_settings()],
        REAL["search"]["seeds"],
        load_real,
        ARMS[arm].preparation,
    )
    best = chosen(search.configs, (yield search))
    yield replace(search, file="when/real.csv", configs=[best], seeds=REAL["seeds"])


def searched_settings() -> Iterator[RunConfig]:
    """The settings that are tried on a real graph."""
    names = ("learning_rate", "dropout", "weight_decay")
    for rate, dropout, decay in product(*(REAL["search"][name] for name in names)):
        yield RunConfig(
            method="gat",
            **REAL["settings"],
            learning_rate=rate,
            feature_dropout=dropout,
            attention_dropout=dropout,
            weight_decay=decay,
        )


def chosen(configs: Sequence[RunConfig], runs: Sequence[Run]) -> RunConfig:
    """The setting with the highest mean validation score; of several, the first.

    A setting with a failed run is not chosen where another has none.
    """

    def mean(config: RunConfig) -> float:
        wanted = config.model_dump(mode="json")
        scores = [run.selected_scores for run in runs if run.config == wanted]
        return fmean(-1.0 if s is None else round(100 * s.val, 4) for s in scores)

    return max(configs, key=mean)


@cache
def grid() -> dict[str, dict[str, float]]:
    """The factors of every generated graph by name, and its seed."""
    usual, centres = GENERATED["centre"], GENERATED["centres"]
    factors = dict(GENERATED["levels"])
    line = factors.pop("homophily")
    found = {name: {**usual, "homophily": value} for name, value in centres.items()}
    found |= {f"homophily {x:g}": {**usual, "homophily": x} for x in line}
    for factor, levels in factors.items():
        for level, centre in product(levels, centres):
            found[f"{centre}, {factor} {level:g}"] = {**found[centre], factor: level}
    first = GENERATED["graph_seed"]
    return {n: {**f, "seed": first + i} for i, (n, f) in enumerate(found.items())}


@lru_cache(maxsize=1)
def generate(name: str) -> Dataset:
    """Samples a graph of the grid."""
    graph, classes = grid()[name], GENERATED["classes"]
    homophily, degree = graph["homophily"], graph["degree"]
    rates = graph["label_rate"], GENERATED["validation_rate"], GENERATED["test_rate"]
    found = csbm(
        n=GENERATED["nodes"],
        a=classes * homophily * degree,
        b=classes * (1.0 - homophily) * degree / (classes - 1),
        mu=graph["mu"],
        d=GENERATED["features"],
        classes=classes,
        sigma=graph["sigma"],
        rho=graph["rho"],
        tau=GENERATED["tau"],
        seed=int(graph["seed"]),
        split="/".join(f"{rate:g}" for rate in rates),
    )
    return replace(found, name=name)


@lru_cache(maxsize=1)
def load_real(name: str) -> dict[int, Dataset]:
    """A real graph with each of the splits that are used, by number.

    Raises:
        UserError: It cannot be loaded.
    """
    graph = _REAL_GRAPHS[name]
    source = str(_mirrored(graph["file"])) if "file" in graph else name
    if graph["splits"] == "own":
        return load_splits(source)
    made = REAL["made_splits"]
    return load_splits(source, split=REAL["made_split"], made_splits=made)


def _mirrored(file: str) -> Path:
    for folder in mirror_folders():
        if (folder / file).exists():
            return folder / file
    raise UserError(
        f"no mirror has {file}; name a folder that has it in TEMPERGAT_MIRROR"
    )
