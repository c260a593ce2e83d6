"""Errors about the files of a graph."""

from pathlib import Path

from tempergat.base import UserError


class GraphError(UserError):
    """Something is wrong with the arrays or the files of a graph.

    Args:
        where: The file or the graph, and where in it.
        problem: What is wrong, as the rest of a sentence about it.
        remedy: What to do.

    Attributes:
        where: As given.
        problem: As given.
    """

    def __init__(self, where: Path | str, problem: str, remedy: str) -> None:
        super().__init__(f"{where} {problem}; {remedy}")
        self.where, self.problem = where, problem


class DamagedFile(GraphError):
    """A raw file of a dataset is not what it should be.

    Args:
        where: The file, or the file and the row.
        problem: What is wrong with it, as the rest of a sentence about it.
        both: Whether it contradicts another file, so that either may be damaged.
        remedy: What to do, where that is not to get the file again.
    """

    def __init__(
        self, where: Path | str, problem: str, *, both: bool = False, remedy: str = ""
    ) -> None:
        it = "both files" if both else "it"
        again = f"replace {it} by a good copy, or delete {it} to download again"
        super().__init__(where, problem, remedy or again)
