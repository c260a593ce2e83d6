"""The answer: which methods could be the best, in two lines of a terminal."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from tempergat.base import joined, listed
from tempergat.stats import BestSet

_IN_WORDS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
# Of a terminal, and of files.
WIDEST_ANSWER = 100


@dataclass(frozen=True)
class Answer:
    """A sentence of few words, and the names that belong to it.

    Attributes:
        headline: What was found; it names the best method where only one is left.
        names: The methods that it is about, where there are several.
        simplest: The one of them with the fewest parameters, if known.
        rest: The methods that it is not about.
        about_rest: What is said of them.
    """

    headline: str
    names: tuple[str, ...] = ()
    simplest: str | None = None
    rest: tuple[str, ...] = ()
    about_rest: str = "left out"

    def __str__(self) -> str:
        return self.in_two_lines()

    def in_two_lines(self, columns: int = WIDEST_ANSWER) -> str:
        """The sentence with as many names as two lines hold.

        Args:
            columns: Characters to a line.
        """
        for text in self._texts():
            if len(textwrap.wrap(text, columns)) <= 2:
                break
        return text

    def _texts(self) -> Iterator[str]:
        """The sentence with all names, then with fewer and fewer."""
        simplest = f"; the simplest of them: {self.simplest}" if self.simplest else ""
        names = f": {joined(self.names)}" if self.names else ""
        for most in range(len(self.rest), 0, -1):
            rest = f"; {self.about_rest}: {listed(self.rest, most)}"
            yield f"{self.headline}{names}{simplest}{rest}."
        yield f"{self.headline}{names}{simplest}."
        if self.names and self.rest:
            yield f"{self.headline}: all but {joined(self.rest)}{simplest}."
            yield f"{self.headline}: {listed(self.names, 2)}{simplest}."
        yield f"{self.headline}{simplest}."


def which_is_best(found: BestSet, simplest: str | None, where: str) -> Answer:
    """Which methods could be the best.

    Args:
        found: They, and those that are left out.
        simplest: The method among them with the fewest parameters, if known.
        where: What the scores are on, as `on cora's test nodes`.
    """
    members, left_out = found.members, tuple(found.left_out)
    count = in_words(len(members) + len(left_out))
    if len(members) == 1:
        headline = f"{members[0]} is the best of {count} {where} (95 %)"
        return Answer(headline, rest=left_out)
    which = f"is one of these {in_words(len(members))}"
    if not left_out:
        which = "can be either of them" if len(members) == 2 else "can be any of them"
    headline = f"The best of {count} {where} {which} (95 %)"
    return Answer(headline, members, simplest, left_out)


def in_words(number: int) -> str:
    """`no`, `one`, `twelve`; larger numbers as digits."""
    return _IN_WORDS[number] if number < len(_IN_WORDS) else str(number)
