"""Times in words, from seconds to years."""

import pytest

from tempergat.base import duration

HOUR, DAY = 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (45.4, "45 s"),
        (200, "3 min 20 s"),
        (2 * HOUR + 300, "2 h 5 min"),
        (99 * HOUR, "99 h 0 min"),
        (6 * DAY, "6 days"),
        (1100 * DAY, "3 years"),
    ],
)
def test_a_time_is_in_units_that_people_use(seconds: float, words: str) -> None:
    assert duration(seconds) == words
