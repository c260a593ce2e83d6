"""The catalogue: facts about every dataset that can be loaded by name.

Numbers of edges are of directed edges as loaded; `paper_edges` is the number usually
printed, where that differs.
"""

from collections.abc import Mapping

from tempergat.base import UserError, did_you_mean
from tempergat.data.catalog.benchmark_entries import BENCHMARK_ENTRIES
from tempergat.data.catalog.entry import Entry
from tempergat.data.catalog.heterophilous_entries import HETEROPHILOUS_ENTRIES
from tempergat.data.catalog.paper_entries import PAPER_ENTRIES

_ENTRIES = (*PAPER_ENTRIES, *HETEROPHILOUS_ENTRIES, *BENCHMARK_ENTRIES)

CATALOG: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def find_entry(name: str) -> Entry:
    """The entry of a name. Case does not matter, and neither does - instead of _.

    Raises:
        UserError: There is no such dataset; the message names the nearest ones.
    """
    by_key = {_key(known): entry for known, entry in CATALOG.items()}
    entry = by_key.get(_key(name))
    if entry is not None:
        return entry
    raise UserError(
        f"there is no dataset {name!r}; {did_you_mean(name, CATALOG)}choose one of "
        "`tempergat data list`, or give the path of your own graph"
    )


def _key(name: str) -> str:
    return name.lower().replace("_", "-")
