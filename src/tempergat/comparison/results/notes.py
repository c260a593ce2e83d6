"""What a comparison is about to do, and what its scores depend on, in words."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tempergat.base import counted, joined, listed
from tempergat.comparison.plan import Plan
from tempergat.comparison.report.formats import p_value
from tempergat.comparison.report.tables import NOTE_ON_RECIPES
from tempergat.comparison.results.result import DatasetResult
from tempergat.comparison.storage.rows import Origin
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps.workers import Workers
from tempergat.comparison.tune import Choice, notes_on_tuning, search_runs
from tempergat.data import Dataset, describe
from tempergat.nn import METHODS
from tempergat.stats import ALPHA, wilson
from tempergat.training import Condition, Run, notes_on_unused_edges


def opening_lines(plan: Plan, place: torch.device | Workers) -> list[str]:
    """The graph, the splits, and how many runs of what.

    Args:
        plan: What to compare, with its graphs.
        place: Where to train.
    """
    lines = describe(plan.first_graph).splitlines()
    if len(plan.graphs) > 1:
        lines.append(_split_assignment(plan))
    where = str(place)
    if not isinstance(place, torch.device):
        where = f"{place.device} of a Ray cluster"
    lines.append(
        f"{counted(len(plan.methods), 'method')} x "
        f"{counted(len(plan.seeds), 'run')} on {where}, recipe "
        f"{plan.recipe}{plan.overrides.words}"
    )
    two = {config.method for config in plan.configs[: -len(plan.methods)]}
    if two:
        one = [method for method in plan.methods if method not in two]
        lines.append(
            f"each is trained with both, {counted(plan.total_runs, 'run')}, and "
            "validation chooses; --recipe default takes half"
            + (f"; {joined(one)}: default alone" if one else "")
        )
    if plan.options.tune is not None:
        each = " on each split" if len(plan.graphs) > 1 else ""
        lines.append(
            f"before that, {counted(plan.options.tune, 'setting')} of each "
            f"method{each} are tried by validation score: "
            f"{counted(search_runs(plan), 'run')}"
        )
    if plan.preparation is not None:
        lines += notes_on_condition(plan.preparation.stored_condition)
    if plan.made_for is not None:
        lines.append(f"the recipe was made for {plan.made_for}, not for this graph")
    lines += plan.overrides.notes_for(plan.methods)
    lines += notes_on_unused_edges(plan.first_graph, plan.configs, plan.builds)
    alone = [name for name, other in plan.against.items() if other not in plan.methods]
    if alone:
        lines.append(
            f"the backbone of {', '.join(alone)} is not among the methods, so whether "
            "it is beaten is not tested"
        )
    return lines


def _split_assignment(plan: Plan) -> str:
    """Which run is trained on which split, in words."""
    runs, splits = len(plan.seeds), len(plan.graphs)
    alone = "choose split 0 to use only the first"
    if plan.first_graph.is_split_made:
        alone = "leave out the number of splits to make only the first"
    if runs <= splits:
        return f"{runs} splits: run r is on split r; {alone}"
    uneven = ""
    if runs % splits:
        uneven = f"; {runs - runs % splits} runs would use each equally often"
    return f"{splits} splits: run r is on split r mod {splits}; {alone}{uneven}"


def notes_below_table(
    plan: Plan,
    store: Store,
    result: DatasetResult,
    runs: Sequence[Run],
    choices: Sequence[Choice],
) -> tuple[str, ...]:
    """Sentences on what the scores of a comparison depend on.

    Args:
        plan: What is compared, with its graphs.
        store: Keeps the runs.
        result: The scores.
        runs: The runs compared.
        choices: The settings that were searched; empty where they were not.
    """
    if choices:
        chosen = {(one.method, one.split): one.chosen.settings for one in choices}
        on_settings = notes_on_tuning(chosen, len(choices[0].trials))
    elif len(plan.configs) > len(plan.methods):
        on_settings = (NOTE_ON_RECIPES,)
    else:
        configs = {config.method: config.model_dump() for config in plan.configs}
        on_settings = note_on_residual(configs)
    return (
        *notes_on_condition(runs[0].condition),
        *plan.first_graph.notes,
        *on_settings,
        *_note_on_changes(plan),
        *_notes_on_test_sets(result, list(plan.graphs.values())),
        *notes_on_unused_edges(plan.first_graph, plan.configs, plan.builds),
        *_notes_on_other_runs(plan, store, runs),
    )


def _note_on_changes(plan: Plan) -> tuple[str, ...]:
    """Which settings were given in place of the recipe's."""
    if not plan.overrides.values:
        return ()
    changed = f"Settings: recipe {plan.recipe}{plan.overrides.words}"
    return (". ".join([changed, *plan.overrides.notes_for(plan.methods)]) + ".",)


def notes_on_condition(condition: Condition | None) -> tuple[str, ...]:
    """What was done to features and model before every run; nothing for None."""
    if condition is None:
        return ()
    own = "every seed has its own, the same for all methods"
    return (f"With {condition.words}{'' if condition.change else f'; {own}'}.",)


def _notes_on_test_sets(
    result: DatasetResult, graphs: Sequence[Dataset]
) -> tuple[str, ...]:
    """How far the scores depend on the choice of test nodes."""
    means = [r.summary.mean for r in result.results if r.summary.mean is not None]
    if not means:
        return ()
    if result.splits > 1:
        return note_on_splits(result, graphs)
    nodes = graphs[0].count("test")
    metric = result.metric
    if not metric.is_share:
        return (
            f"Scores are on one test set of {nodes:,} nodes; more seeds do not show "
            "how they would change with other nodes.",
        )
    best = max(means, key=metric.merit)
    ends = wilson(best / metric.factor, nodes)
    low, high = (metric.text(metric.shown(end)) for end in ends)
    return (
        f"Scores are on one test set of {nodes:,} nodes: with others the "
        f"{metric.best}, {metric.text(best)}, could be {low} to {high} (95 %); more "
        "seeds do not reduce that.",
    )


def note_on_residual(configs: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """That `gat` in the table is not the usual GAT, where layers have a residual.

    Args:
        configs: The settings of each method.
    """
    # A module of the user has settings of training only.
    having = [
        method
        for method, config in configs.items()
        if (config.get("residual") or _always_skips(method))
        and config.get("source_hash") is None
    ]
    if not having:
        return ()
    every = len(having) == len(configs)
    who = "All methods" if every else listed(having, most=len(having))
    gated = {configs[method].get("residual") for method in having} == {"gate"}
    note = (
        f"{who} {'have' if every or len(having) > 1 else 'has'} a residual: each layer "
        f"adds a {'learned share of a ' if gated else ''}linear map of its input"
    )
    norm, *others = {configs[method].get("norm") for method in having}
    if norm is None or others:
        note += ", which layers of the usual GCN, GAT and GATv2 do not."
    else:
        note += (
            f", and {norm} norm stands between layers. The usual GCN, GAT and GATv2 "
            "have neither."
        )
    return (note,)


def _always_skips(method: str) -> bool:
    return method in METHODS and METHODS[method].always_skips


def _notes_on_other_runs(
    plan: Plan, store: Store, runs: Sequence[Run]
) -> tuple[str, ...]:
    """Stored runs of these methods and seeds on this graph that are not compared.

    They were made on another device, by other code or with other settings.
    """
    fingerprints = [graph.fingerprint for graph in plan.graphs.values()]
    hashes = sorted({run.config_hash for run in runs})
    same = store.count_by_origin(fingerprints, hashes, plan.seeds)
    every = store.count_by_origin(fingerprints, None, plan.seeds, plan.methods)
    used = {Origin(run.device, run.numerics) for run in runs}
    notes = []
    elsewhere = {origin: n for origin, n in same.items() if origin not in used}
    if elsewhere:
        words = (f"{counted(n, 'run')} made on {o}" for o, n in elsewhere.items())
        are = "are" if sum(elsewhere.values()) > 1 else "is"
        notes.append(
            f"{' and '.join(words)} {are} in the store and {are} not compared with "
            "these."
        )
    others = sum(every.values()) - sum(same.values())
    if others > 0:
        notes.append(
            f"{counted(others, 'run')} of these methods with other settings (of "
            f"another recipe, for example) {'is' if others == 1 else 'are'} in the "
            "store and not in this table; `tempergat compare --table` shows what the "
            "store has."
        )
    return tuple(notes)


def split_ratio(graphs: Sequence[Dataset]) -> float:
    """Test nodes per training node, for which tests over splits are corrected.

    Args:
        graphs: The graph with each of the splits that have runs.

    Returns:
        0 where no two splits share a training node.
    """
    uses = sum(graph.store.train_mask.int() for graph in graphs)
    if not isinstance(uses, int) and int(uses.max()) < 2:
        return 0.0
    test = sum(graph.count("test") for graph in graphs)
    return test / sum(graph.count("train") for graph in graphs)


def stored_split_ratio(runs: Sequence[Run]) -> float | None:
    """The same by stored runs, whose splits share training nodes if none says no.

    Returns:
        None where a split has no run that says how many nodes it has.
    """
    splits = {run.split for run in runs}
    if len(splits) == 1 or all(run.shares and not run.shares[0] for run in runs):
        return 0.0
    sizes = {
        run.split: (run.training_nodes, sum(map(sum, run.confusion)))
        for run in runs
        if run.training_nodes and run.confusion
    }
    if len(sizes) < len(splits):
        return None
    train = sum(training_nodes for training_nodes, _ in sizes.values())
    return sum(test_nodes for _, test_nodes in sizes.values()) / train


def note_on_splits(
    result: DatasetResult, of_splits: Sequence[Run | Dataset], *, stored: bool = False
) -> tuple[str, ...]:
    """What several splits mean for intervals and p-values.

    Args:
        result: Methods on several splits.
        of_splits: The splits, or stored runs on them.
        stored: Whether the graph is not at hand.
    """
    same_test = [one.shares and one.shares[1] for one in of_splits]
    note = (
        "Each split has other test nodes, so intervals and p also include, in part, "
        "how much scores change with the test nodes."
    )
    if any(same_test):
        which = "Some splits have the same test nodes"
        if all(same_test):
            which = "No split has test nodes of its own"
        note = (
            f"{which}, so intervals and p do not show how much scores change with the "
            "test nodes."
        )
    ratio = result.test_to_train
    if ratio is None:
        return (
            f"{note} Splits of one graph usually share training nodes. These runs do "
            "not say how many training nodes they had, so p is not corrected for that, "
            "and is too small; compare them again with the graph.",
        )
    if ratio == 0.0:
        return (note,)
    why = (
        "Splits of one graph usually share training nodes"
        if stored
        else "The splits share training nodes"
    )
    note += (
        f" {why}, so their scores are not independent: intervals and p are corrected "
        "for that (Nadeau and Bengio)."
    )
    if ratio <= 1.0:
        return (note,)
    return (note, _note_on_plain_tests(result, ratio))


def _note_on_plain_tests(result: DatasetResult, ratio: float) -> str:
    note = (
        f"There are {ratio:.1f} test nodes per training node, which makes the "
        "corrected p very conservative."
    )
    parts = []
    if result.pairs:
        worse = [
            method
            for method, c in result.against_highest.items()
            if c.plain_p_holm is not None and c.plain_p_holm < ALPHA
        ]
        best = result.pairs[0].baseline
        parts.append(f"{joined(worse) if worse else 'none'} worse than {best}")
    compared = list(result.against_baseline.values())
    if compared:
        against = {c.baseline for c in compared}
        other = next(iter(against)) if len(against) == 1 else "the backbone"
        each = ", ".join(f"{c.method} {p_value(c.plain_p_holm)}" for c in compared)
        parts.append(f"against {other} p is: {each}")
    if not parts:
        return note
    return f"{note} By plain t-tests, whose p is too small: {'; '.join(parts)}."
