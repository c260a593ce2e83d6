"""Searches settings of every method and trains the reported runs with the best."""

import csv
from typing import Any

from studies.results import read_plan, read_whole_runs, result_path
from studies.runner import Stage, Stages
from tempergat.base import csv_text, write_text
from tempergat.comparison.search import Proposals, searched_values
from tempergat.training import config_hash, load_recipe

PLAN = read_plan("tuned")
GRAPHS = list(PLAN["graphs"])
TRIALS = "tuned/trials.csv"


def stages(graph: str) -> Stages:
    """All searches on a graph whose reported runs are not all there."""
    # The runs of all repeats are in one file; the trials say whose a reported run is.
    chosen = {
        (line["dataset"], int(line["repeat"]), line["method"]): line["config_hash"]
        for line in read_trials()
        if line["chosen"] == "True"
    }
    for number, search in enumerate(PLAN["searches"]):
        if graph not in search["graphs"]:
            continue
        file = "tuned/repeats.csv" if number else "tuned/runs.csv"
        seeds = reported_seeds(search)
        runs = read_whole_runs(file)
        runs = [run for run in runs if run.dataset == graph and run.seed in seeds]
        for method in PLAN["methods"]:
            found = [run for run in runs if run.method == method]
            if number:
                best = chosen.get((graph, number, method))
                found = [run for run in found if run.config_hash == best]
            if len(found) < len(seeds):
                yield from search_stages(graph, file, number, method)


def search_stages(graph: str, file: str, number: int, method: str) -> Stages:
    """The trials of one search, and the reported runs with the best settings."""
    search = PLAN["searches"][number]
    proposals = Proposals(
        load_recipe(PLAN["graphs"][graph]).config_for(method),
        searched_values(method),
        search["sampler_seed"],
    )
    seeds = range(search["first_seed"], search["first_seed"] + PLAN["seeds"])
    for _ in range(PLAN["trials"]):
        proposals.tell((yield Stage(file, graph, [proposals.ask()], seeds)))
    best = proposals.config_of(proposals.best)
    yield Stage(file, graph, [best], reported_seeds(search))
    if number:
        write_trials(graph, number, proposals)


def reported_seeds(search: dict[str, Any]) -> range:
    """The seeds of the reported runs of a search."""
    first, last = search["reported_seeds"].split(" to ")
    return range(int(first), int(last) + 1)


def read_trials() -> list[dict[str, Any]]:
    """What the repeats tried, a line for each trial."""
    path = result_path(TRIALS)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return list(csv.DictReader(text.splitlines()))


def write_trials(graph: str, number: int, proposals: Proposals) -> None:
    """Add the trials of one search, whose runs are all stored."""
    best, lines = proposals.best, read_trials()
    for trial in proposals.trials:
        settings = proposals.config_of(trial).model_dump(mode="json")
        lines.append(
            {
                "dataset": graph,
                "repeat": number,
                "method": trial.method,
                "trial": trial.number,
                "config_hash": config_hash(settings),
                "val_mean": None if trial.score is None else round(trial.score, 4),
                "failed": trial.validation.failed,
                "chosen": trial is best,
            }
        )
    lines.sort(key=lambda line: (line["dataset"], int(line["repeat"]), line["method"]))
    write_text(result_path(TRIALS), csv_text(lines))
