"""Methods that predict one class for every test node, in words."""

from tempergat.base import joined
from tempergat.comparison.results import DatasetResult, MethodResult

# Beside the name of such a method in tables.
ONE_CLASS_MARK = "†"
# A verdict names up to this many methods, and counts more.
_MOST_NAMED = 3


def notes_on_one_class(result: DatasetResult) -> list[str]:
    """One note below the table on all methods that have such runs."""
    named = [m for m in result.results if m.only_class]
    if not named:
        return []
    methods = ", ".join(f"{m.method} in {_of_runs(m)}" for m in named)
    return [
        f"{ONE_CLASS_MARK} predicts only {_class_in_words(result)}: {methods}. Class "
        "weights (--class-weights balanced) or another recipe can help."
    ]


def one_class_clause(result: DatasetResult) -> str:
    """The end of a verdict that names such methods; empty where there are none."""
    named = [m for m in result.results if m.only_class]
    if not named:
        return ""
    everywhere = [m.method for m in named if len(m.only_class) == m.summary.runs]
    if len(everywhere) == len(result.results) > 1:
        return "; every method predicts only one class in all runs"
    if len(named) > _MOST_NAMED:
        often = "all" if len(everywhere) == len(named) else "some"
        return (
            f"; {len(named)} of {len(result.results)} methods predict only "
            f"{_class_in_words(result)} in {often} runs"
        )
    parts = []
    if everywhere:
        parts.append(f"{joined(everywhere)} {_in_all(len(everywhere))}")
    parts += [
        f"{m.method} in {_of_runs(m)}" for m in named if m.method not in everywhere
    ]
    return f"; only {_class_in_words(result)} is predicted by {', '.join(parts)}"


def _class_in_words(result: DatasetResult) -> str:
    predicted = {label for m in result.results for label in m.only_class.values()}
    largest = result.largest_class
    is_largest = largest is not None and predicted == {largest.label}
    return "the largest class" if is_largest else "one class"


def _in_all(methods: int) -> str:
    return "in all runs" if methods == 1 else "in all of their runs"


def _of_runs(result: MethodResult) -> str:
    found, runs = len(result.only_class), result.summary.runs
    return f"all {runs} runs" if found == runs > 1 else f"{found} of {runs} runs"
