"""The results of the studies, as tables of runs."""

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from tempergat.training import CLEAN

STUDIES = Path(__file__).parent


def result_path(file: str) -> Path:
    """Where a file of results is: `when/real.csv` is the file real.csv of `when`."""
    study, _, name = file.partition("/")
    return STUDIES / study / "results" / name


@cache
def read_plan(study: str) -> dict[str, Any]:
    """The plan of a study."""
    text = (STUDIES / study / "plan.yaml").read_text(encoding="utf-8")
    plan: dict[str, Any] = yaml.safe_load(text)
    return plan


@cache
def read_csv(file: str) -> pd.DataFrame:
    """A file of results; do not change it in place.

    Args:
        file: Its path, as `result_path` takes it.
    """
    return pd.read_csv(result_path(file))


@cache
def read_runs(file: str) -> pd.DataFrame:
    """Runs with their settings; do not change them in place.

    Columns are those of the file and one for each setting and each attribute of a
    `Condition`. `train`, `val` and `test` are the scores in percent at the epoch that
    the run's own selection rule chooses.

    Args:
        file: The CSV, as `result_path` takes it. The settings stand beside it, in a
            file that ends in `.configs.json`.
    """
    runs = read_csv(file)
    configs = json.loads(result_path(file).with_suffix(".configs.json").read_text())
    settings = pd.DataFrame.from_dict(configs, orient="index").drop(columns="method")
    runs = runs.join(settings, on="config_hash")
    if "condition" in runs:
        texts = runs["condition"].fillna("{}")
        facts = [{**asdict(CLEAN), **json.loads(text)} for text in texts]
        runs = runs.join(pd.DataFrame(facts))
    for part in ("train", "val", "test"):
        runs[part] = float("nan")
        for rule in runs["selection"].unique():
            chosen = runs["selection"] == rule
            runs.loc[chosen, part] = 100.0 * runs[f"{rule}_{part}"]
    return runs
