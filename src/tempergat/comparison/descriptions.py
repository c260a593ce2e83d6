"""What a comparison is about to do, and what its scores depend on, in words."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tempergat.base import counted, listed
from tempergat.comparison.plan import Plan
from tempergat.comparison.results import DatasetResult
from tempergat.comparison.splits import note_on_splits
from tempergat.comparison.storage.groups import Origin, elsewhere_note
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps.workers import Workers
from tempergat.comparison.tuned import search_runs
from tempergat.data import Dataset, describe
from tempergat.training import Condition, Run, notes_on_unused_edges


def opening_lines(
    plan: Plan, graphs: Mapping[int, Dataset], device: torch.device | Workers
) -> list[str]:
    """The graph, the splits, and how many runs of what.

    Args:
        plan: What to compare.
        graphs: The graph with each of its splits, by the splits' numbers.
        device: Where to train.
    """
    lines = describe(next(iter(graphs.values()))).splitlines()
    if len(graphs) > 1:
        lines.append(_split_assignment(len(plan.seeds), graphs))
    lines.append(
        f"{counted(len(plan.methods), 'method')} x "
        f"{counted(len(plan.seeds), 'run')} on {_in_words(device)}, recipe "
        f"{plan.recipe}{plan.overrides.words}"
    )
    if plan.tune is not None:
        each = " on each split" if len(graphs) > 1 else ""
        lines.append(
            f"before that, {counted(plan.tune, 'setting')} of each method{each} are "
            f"tried by validation score: {counted(search_runs(plan, graphs), 'run')}"
        )
    if plan.preparation is not None:
        lines += notes_on_condition(plan.preparation.stored_condition)
    if plan.made_for is not None:
        lines.append(f"the recipe was made for {plan.made_for}, not for this graph")
    if plan.builds and plan.overrides.model_settings:
        lines.append(
            f"{', '.join(plan.overrides.model_settings)} do not change your own "
            f"{', '.join(plan.builds)}"
        )
    lines += notes_on_unused_edges(
        next(iter(graphs.values())), plan.configs, plan.builds
    )
    if plan.without_baseline:
        lines.append(
            f"the backbone of {', '.join(plan.without_baseline)} is not among the "
            "methods, so whether it is beaten is not tested"
        )
    return lines


def _in_words(device: torch.device | Workers) -> str:
    if isinstance(device, torch.device):
        return str(device)
    return f"{device.device} of a Ray cluster"


def notes_on_condition(condition: Condition | None) -> tuple[str, ...]:
    """What was done to features and model before every run; nothing for None."""
    if condition is None:
        return ()
    own = "every seed has its own, the same for all methods"
    return (f"With {condition.words}{'' if condition.change else f'; {own}'}.",)


def notes_on_test_sets(
    result: DatasetResult, graphs: Mapping[int, Dataset]
) -> tuple[str, ...]:
    """How far the scores depend on the choice of test nodes.

    Args:
        result: The scores.
        graphs: The graph with each of its splits, by the splits' numbers.
    """
    means = [r.summary.mean for r in result.results if r.summary.mean is not None]
    if not means:
        return ()
    if result.splits > 1:
        return note_on_splits(result)
    nodes = next(iter(graphs.values())).count("test")
    if result.metric not in ("accuracy", "micro_f1"):
        return (
            f"Scores are on one test set of {nodes:,} nodes; more seeds do not show "
            "how they would change with other nodes.",
        )
    share = max(means) / 100.0
    error = 100.0 * math.sqrt(share * (1.0 - share) / nodes)
    return (
        f"Scores are on one test set of {nodes:,} nodes, whose own standard error is "
        f"about {error:.1f} points; more seeds do not reduce it.",
    )


def note_on_residual(
    configs: Mapping[str, Mapping[str, Any]], recipe: str | None = None
) -> tuple[str, ...]:
    """That `gat` in the table is not the usual GAT, where layers have a residual.

    Args:
        configs: The settings of each method.
        recipe: Name of the recipe; None where it is not known.
    """
    having = [method for method, config in configs.items() if _has_residual(config)]
    if not having:
        return ()
    every = len(having) == len(configs)
    who = "All methods" if every else listed(having, most=len(having))
    note = (
        f"{who} {'have' if every or len(having) > 1 else 'has'} a residual: each layer "
        "adds a linear map of its input"
    )
    norm, *others = {configs[method].get("norm") for method in having}
    if norm is None or others:
        note += ", which layers of the usual GCN, GAT and GATv2 do not."
    else:
        note += (
            f", and {norm} norm stands between layers. The usual GCN, GAT and GATv2 "
            "have neither."
        )
    if recipe == "default":
        note += ' Without them: --recipe plain (in Python: recipe="plain").'
    return (note,)


def _has_residual(config: Mapping[str, Any]) -> bool:
    # A module of the user has settings of training only.
    return bool(config.get("residual")) and config.get("source_hash") is None


def notes_on_other_runs(
    plan: Plan, graphs: Mapping[int, Dataset], store: Store, runs: Sequence[Run]
) -> tuple[str, ...]:
    """Stored runs of these methods and seeds on this graph that are not compared.

    They were made on another device, by other code or with other settings.

    Args:
        plan: What is compared.
        graphs: The graph with each of its splits, by the splits' numbers.
        store: Keeps the runs.
        runs: The runs compared.
    """
    fingerprints = [graph.fingerprint for graph in graphs.values()]
    hashes = sorted({run.config_hash for run in runs})
    same = store.count_by_origin(fingerprints, hashes, plan.seeds)
    every = store.count_by_origin(fingerprints, None, plan.seeds, plan.methods)
    used = {Origin(run.device, run.numerics) for run in runs}
    elsewhere = elsewhere_note({o: n for o, n in same.items() if o not in used})
    others = sum(every.values()) - sum(same.values())
    return (
        *(() if elsewhere is None else (elsewhere,)),
        *(_note_on_other_settings(others) if others > 0 else ()),
    )


def _note_on_other_settings(runs: int) -> tuple[str, ...]:
    return (
        f"{counted(runs, 'run')} of these methods with other settings (of another "
        f"recipe, for example) {'is' if runs == 1 else 'are'} in the store "
        "and not in this table; `tempergat compare --table` prints a table of each.",
    )


def _are_made(graphs: Mapping[int, Dataset]) -> bool:
    return next(iter(graphs.values())).is_split_made


def _split_assignment(runs: int, graphs: Mapping[int, Dataset]) -> str:
    """Which run is trained on which split, in words."""
    splits = len(graphs)
    alone = "choose split 0 to use only the first"
    if _are_made(graphs):
        alone = "leave out the number of splits to make only the first"
    if runs <= splits:
        return f"{runs} splits: run r is on split r; {alone}"
    uneven = ""
    if runs % splits:
        uneven = f"; {runs - runs % splits} runs would use each equally often"
    return f"{splits} splits: run r is on split r mod {splits}; {alone}{uneven}"
