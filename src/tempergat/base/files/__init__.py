"""Files: atomic writes, locks, arrays, and values of YAML, CSV and JSON."""

from tempergat.base.files.arrays import write_array
from tempergat.base.files.atomic import (
    file_stem,
    is_standard_output,
    write_bytes,
    write_into,
    write_text,
)
from tempergat.base.files.csv_files import csv_text
from tempergat.base.files.json_values import replace_non_finite
from tempergat.base.files.locks import FileLock, GroupLocks
from tempergat.base.files.yaml_files import read_yaml

__all__ = [
    "FileLock",
    "GroupLocks",
    "csv_text",
    "file_stem",
    "is_standard_output",
    "read_yaml",
    "replace_non_finite",
    "write_array",
    "write_bytes",
    "write_into",
    "write_text",
]
