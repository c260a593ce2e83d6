"""Finished runs as rows of an SQLite file, and as published CSV."""

from tempergat.study.engine.storage.export import (
    export_runs,
    export_stores,
    read_runs,
    write_runs,
)
from tempergat.study.engine.storage.store import Group, Store

__all__ = [
    "Group",
    "Store",
    "export_runs",
    "export_stores",
    "read_runs",
    "write_runs",
]
