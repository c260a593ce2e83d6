"""The datasets that can be loaded by name, and the raw files they are read from."""

from tempergat.data.catalog.entries import CATALOG, find_entry
from tempergat.data.catalog.entry import Entry
from tempergat.data.catalog.files import RemoteFile

__all__ = ["CATALOG", "Entry", "RemoteFile", "find_entry"]
