"""The error for a downloaded file that is not what it should be."""

from pathlib import Path

from tempergat.base import UserError


class DamagedFile(UserError):
    """A raw file of a dataset is damaged.

    Args:
        where: The file, or the file and the row.
        problem: What is wrong with it, as the rest of a sentence about it.
        both: Whether it contradicts another file, so that either may be damaged.

    Attributes:
        where: As given.
        problem: As given.
    """

    def __init__(self, where: Path | str, problem: str, *, both: bool = False) -> None:
        self.where, self.problem = where, problem
        it = "both files" if both else "it"
        remedy = f"replace {it} by a good copy, or delete {it} to download again"
        super().__init__(f"{where} {problem}; {remedy}")
