"""Methods that predict one class for every test node, in words."""

from tempergat.base import joined
from tempergat.study.results import DatasetResult, MethodResult


def predicts_one_class(result: MethodResult) -> str | None:
    """`predicts only the largest class in 3 of 10 runs`; None where no run does."""
    classes = set(result.only_class.values())
    if not classes:
        return None
    what = "the largest class" if classes == {result.largest_class} else "one class"
    return f"predicts only {what} in {_of_runs(result)}"


def notes_on_one_class(result: DatasetResult) -> list[str]:
    """A sentence below the table for each method that has such runs."""
    return [
        f"{method.method} *: {words}; class weights (--class-weights balanced) or "
        "another recipe can help."
        for method in result.results
        if (words := predicts_one_class(method)) is not None
    ]


def one_class_clause(result: DatasetResult) -> str:
    """The end of a verdict that names such methods; empty where there are none."""
    named = [m for m in result.results if m.only_class]
    if not named:
        return ""
    everywhere = [m.method for m in named if len(m.only_class) == m.summary.runs]
    if len(everywhere) == len(result.results) > 1:
        return "; every method predicts only one class in all runs"
    parts = []
    if everywhere:
        parts.append(f"{joined(everywhere)} {_in_all(len(everywhere))}")
    parts += [
        f"{m.method} in {_of_runs(m)}" for m in named if m.method not in everywhere
    ]
    largest = all(set(m.only_class.values()) == {m.largest_class} for m in named)
    what = "the largest class" if largest else "one class"
    return f"; only {what} is predicted by {', '.join(parts)}"


def _in_all(methods: int) -> str:
    return "in all runs" if methods == 1 else "in all of their runs"


def _of_runs(result: MethodResult) -> str:
    found, runs = len(result.only_class), result.summary.runs
    return f"all {runs} runs" if found == runs > 1 else f"{found} of {runs} runs"
