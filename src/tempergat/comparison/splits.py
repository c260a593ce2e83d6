"""What several splits of one graph mean for tests and intervals."""

from collections.abc import Mapping, Sequence

from tempergat.base import joined
from tempergat.comparison.report.formats import p_value
from tempergat.comparison.results import DatasetResult
from tempergat.data import Dataset
from tempergat.stats import ALPHA
from tempergat.training import Run


def split_ratio(graphs: Mapping[int, Dataset]) -> float:
    """Test nodes per training node, for which tests over splits are corrected.

    Args:
        graphs: The graph with each of its splits, by the splits' numbers.

    Returns:
        0 where no two splits share a training node.
    """
    uses = sum(graph.store.train_mask.int() for graph in graphs.values())
    if not isinstance(uses, int) and int(uses.max()) < 2:
        return 0.0
    train, test = (
        sum(graph.count(part) for graph in graphs.values())
        for part in ("train", "test")
    )
    return test / train


def stored_split_ratio(runs: Sequence[Run]) -> float | None:
    """The same by stored runs, whose splits are taken to share training nodes.

    Returns:
        None where a split has no run that says how many nodes it has.
    """
    splits = {run.split for run in runs}
    if len(splits) == 1:
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


def note_on_splits(result: DatasetResult, *, stored: bool = False) -> tuple[str, ...]:
    """What several splits mean for intervals and p-values.

    Args:
        result: Methods on several splits.
        stored: Whether the graph is not at hand.
    """
    note = (
        "Each split has other test nodes, so intervals and p also include, in part, "
        "how much scores change with the test nodes."
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
    best = result.best
    if result.pairs and best is not None:
        worse = [
            c.method
            for c in result.pairs
            if c.baseline == best.method and _is_worse(c.plain_p_holm)
        ]
        parts.append(f"{joined(worse) if worse else 'none'} worse than {best.method}")
    compared = [r.comparison for r in result.results if r.comparison is not None]
    if compared:
        against = {c.baseline for c in compared}
        other = next(iter(against)) if len(against) == 1 else "the backbone"
        each = ", ".join(f"{c.method} {p_value(c.plain_p_holm)}" for c in compared)
        parts.append(f"against {other} p is: {each}")
    if not parts:
        return note
    return f"{note} By plain t-tests, whose p is too small: {'; '.join(parts)}."


def _is_worse(p: float | None) -> bool:
    return p is not None and p < ALPHA
