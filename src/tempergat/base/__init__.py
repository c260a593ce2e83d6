"""Files, locks, YAML, suggestions and system errors, for all packages; without torch.

`tempergat.base.figures`, the look of the figures, is imported by its own name, because
it loads matplotlib.
"""

from tempergat.base.cutting import even_groups
from tempergat.base.errors import UserError, first_line
from tempergat.base.files import (
    FileLock,
    GroupLocks,
    csv_text,
    file_stem,
    is_standard_output,
    read_yaml,
    replace_non_finite,
    write_array,
    write_bytes,
    write_into,
    write_text,
)
from tempergat.base.lazy_packages import lazy_names
from tempergat.base.shown_text import one_line, printable, shown
from tempergat.base.suggest import did_you_mean, suggest_one_of
from tempergat.base.system_errors import (
    available_bytes,
    explain_full_disk,
    explain_unreadable,
    is_out_of_memory,
    is_system_error,
    require_memory,
)
from tempergat.base.validation import first_validation_error, validated
from tempergat.base.words import counted, duration, joined, listed

__all__ = [
    "FileLock",
    "GroupLocks",
    "UserError",
    "available_bytes",
    "counted",
    "csv_text",
    "did_you_mean",
    "duration",
    "even_groups",
    "explain_full_disk",
    "explain_unreadable",
    "file_stem",
    "first_line",
    "first_validation_error",
    "is_out_of_memory",
    "is_standard_output",
    "is_system_error",
    "joined",
    "lazy_names",
    "listed",
    "one_line",
    "printable",
    "read_yaml",
    "replace_non_finite",
    "require_memory",
    "shown",
    "suggest_one_of",
    "validated",
    "write_array",
    "write_bytes",
    "write_into",
    "write_text",
]
