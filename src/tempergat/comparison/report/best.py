"""Which methods are best, in words that say no more than the tests."""

from collections.abc import Sequence

from tempergat.base import joined, listed
from tempergat.stats import PairedComparison, best_set

# A sentence names up to so many methods; of more it names two and counts the others.
_MOST_NAMED = 4
# With fewer pairs a test may miss what anyone can see.
_MIN_PAIRS_TO_DENY = 5


def best_in_words(
    pairs: Sequence[PairedComparison], score: str, simplest: str | None, where: str
) -> str:
    """The answer of the tests of all pairs, as sentences without the last full stop.

    Args:
        pairs: What `compare_all` gives for scores in the order of `ranked`; two methods
            or more.
        score: The highest mean.
        simplest: The method of the best set with the fewest parameters, if known.
        where: What the scores are on, as `on cora`.
    """
    best, *equal = best_set(pairs) or (pairs[0].baseline,)
    worse = [c.method for c in pairs if c.baseline == best and c.verdict == "worse"]
    if all(comparison.t_p is None for comparison in pairs):
        return f"Too few runs to compare methods {where}; {best} scores highest {score}"
    untested = [c.method for c in pairs if c.baseline == best and c.t_p is None]
    last = ""
    if untested:
        have = "has" if len(untested) == 1 else "have"
        last = f". {named(untested)} {have} too few runs to be compared"
    if not equal:
        every = len(worse) > 1 and not untested
        others = "every other method is" if every else _are(worse)
        return f"{best} is best {where} {score}: {others} worse{last}"
    known = "which is simplest is not known" if simplest is None else ""
    if len(equal) == 1:
        words = (
            f"{best} scores highest {where} {score}; its lead over {equal[0]} is "
            f"within noise; {known or f'{simplest} is the simpler'}"
        )
    else:
        words = (
            f"{named([f'{best} {score}', *equal])} cannot be told apart {where}; "
            f"{known or f'the simplest is {simplest}'}"
        )
    if worse:
        words += f". {_are(worse)} worse"
    return f"{words}{last}"


def denial(
    beats: bool | None, pairs: int, what: str, meaning: str = "", who: str = "method"
) -> list[str]:
    """That no method beats something, where no test shows that one does.

    Args:
        beats: Whether a test shows that one does; None where none was made.
        pairs: How many pairs the tests had.
        what: What would have to be beaten.
        meaning: What follows from it, where there are pairs enough to say so.
        who: Which kind of method would have to beat it.
    """
    if beats is not False:
        return []
    if pairs < _MIN_PAIRS_TO_DENY:
        return [f"No {who} is shown to beat {what}"]
    return [f"No {who} beats {what}{meaning}"]


def _are(methods: Sequence[str]) -> str:
    return f"{named(methods)} {'is' if len(methods) == 1 else 'are'}"


def named(methods: Sequence[str]) -> str:
    """`a, b and c`; of many `a, b and 3 more`."""
    return joined(methods) if len(methods) <= _MOST_NAMED else listed(methods, 2)
