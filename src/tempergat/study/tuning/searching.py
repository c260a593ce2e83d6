"""A search for good settings of a method by validation score.

Each trial trains the seeds of the search through the store, and runs that are in the
store are not trained again. Test scores are not used.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import yaml

from tempergat.base import UserError, csv_text, write_into
from tempergat.data import Dataset
from tempergat.nn import BACKBONES, METHODS
from tempergat.study.engine import OnProgress, Store, sweep
from tempergat.study.paper import PLAIN_METHODS
from tempergat.study.results import METRIC_NAMES
from tempergat.study.search import Proposals, SearchPlan, Trial, best_trial
from tempergat.training import (
    AttentionBlock,
    GcnBlock,
    Recipe,
    load_recipe,
    settings_on,
)


def search(
    dataset: Dataset,
    plan: SearchPlan,
    method: str,
    store: Store,
    device: torch.device,
    on_progress: OnProgress | None = None,
    *,
    own_first: bool = False,
) -> list[Trial]:
    """Try settings for one method.

    Args:
        dataset: The graph.
        plan: The values to try, the number of trials and the seeds.
        method: The method that is trained.
        store: Where runs are stored; runs in it are not trained again.
        device: Where to train.
        on_progress: As for `sweep`, within a trial.
        own_first: Whether the first trial has the recipe's own settings.

    Returns:
        The trials in their order.

    Raises:
        UserError: Optuna is missing, or a proposal cannot be trained.
    """
    proposals = Proposals(
        settings_on(load_recipe(plan.base).config_for(method), dataset),
        plan.values_for(METHODS[method].backbone),
        plan.sampler_seed,
        own_first=own_first,
    )
    for _ in range(plan.trials):
        tried = proposals.ask()
        runs = sweep(dataset, [tried], plan.run_seeds, store, device, on_progress)
        proposals.tell(runs)
    return proposals.trials


def tuned_recipe(plan: SearchPlan, trials: Sequence[Trial]) -> str:
    """The text of the recipe that holds the best settings of each backbone.

    Args:
        plan: The search.
        trials: All of its trials.

    Raises:
        UserError: A backbone has no trial without a failed run.
    """
    base = load_recipe(plan.base)
    best = {
        backbone: best_trial([t for t in trials if t.method == backbone])
        for backbone in PLAIN_METHODS
    }
    metric = METRIC_NAMES[base.metric or "accuracy"]
    head = {
        "dataset": base.dataset,
        "runs": base.runs,
        "metric": base.metric,
        "training": base.training,
    }
    if base.class_weights is not None:
        head["class_weights"] = base.class_weights
    parts = [
        "# Expected scores and time: see docs/tuned.md.\n"
        "# Made by `tempergat reproduce tuned --run`: for each backbone the best of "
        f"{plan.trials} trials by mean\n"
        f"# validation {metric} over {plan.seeds} seeds from {plan.first_seed} on. "
        f"`searched` marks what was chosen so,\n"
        f"# `set` what the search had set beforehand; the rest is that of "
        f"{plan.base}.\n",
        *(f"{name}: {_yaml(value)}\n" for name, value in head.items()),
    ]
    parts += [
        _block("attention", base, plan, best["gat"]),
        _block("gatv2", base, plan, best["gatv2"]),
        _block("gcn", base, plan, best["gcn"]),
    ]
    return "".join(parts)


def trials_csv(dataset: str, trials: Sequence[Trial]) -> str:
    """One line per trial: settings and validation scores in percent."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.settings))
    return csv_text(
        [
            {
                "dataset": dataset,
                "backbone": trial.method,
                "trial": trial.number,
                **{name: trial.settings.get(name) for name in names},
                "runs": trial.validation.runs,
                "failed": trial.validation.failed,
                "val_mean": trial.validation.mean,
                "val_std": trial.validation.std,
            }
            for trial in trials
        ]
    )


def write_tuned(
    name: str,
    plan: SearchPlan,
    trials: Sequence[Trial],
    recipes: Path,
    tables: Path,
) -> tuple[Path, Path]:
    """Write the tuned recipe and the table of all trials.

    Args:
        name: Name of the dataset.
        plan: The search.
        trials: All of its trials.
        recipes: Folder of the recipe.
        tables: Folder of the table.

    Returns:
        Where they are.

    Raises:
        UserError: A backbone has no usable trial, or a file cannot be written.
    """
    text = tuned_recipe(plan, trials)
    table = write_into(tables, f"{name}_trials.csv", trials_csv(name, trials))
    return write_into(recipes, f"{name}.yaml", text), table


def read_trials(path: Path) -> list[dict[str, str]]:
    """The lines of a table of trials.

    Raises:
        UserError: It cannot be read.
    """
    try:
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}; make it with `tempergat reproduce "
            "tuned --run`"
        ) from error


def _block(name: str, base: Recipe, plan: SearchPlan, trial: Trial) -> str:
    """A block of the recipe: the base recipe's settings with those of the trial."""
    backbone = METHODS[trial.method].backbone
    config = base.config_for(backbone).with_changes(**trial.settings)
    has_attention = BACKBONES[backbone].has_attention
    fields = (AttentionBlock if has_attention else GcnBlock).model_fields
    # A recipe states the width in one of two ways; sampling is not searched.
    settings = {
        key: value
        for key, value in config.model_dump(mode="json").items()
        if key in fields and (value is not None or fields[key].is_required())
    }
    values = plan.values_for(backbone)
    lines = [
        f"{name}:  # trial {trial.number} of {backbone}: validation "
        f"{trial.validation.mean:.2f}\n"
    ]
    for key, value in settings.items():
        line = f"  {key}: {_yaml(value)}"
        if key in values:
            reason = "searched" if len(values[key]) > 1 else "set"
            line = f"{line:<31} # {reason}"
        lines.append(f"{line}\n")
    return "".join(lines)


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True).split("\n")[0]
