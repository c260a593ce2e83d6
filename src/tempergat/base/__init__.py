"""Files, locks, YAML, suggestions and system errors, for all packages; without torch.

`tempergat.base.figures`, the look of the figures, is imported by its own name, because
it loads matplotlib.
"""

from typing import TYPE_CHECKING

from .lazy_packages import lazy_names as lazy_names

if TYPE_CHECKING:
    from .errors import UserError as UserError
    from .errors import first_line as first_line
    from .files.arrays import write_array as write_array
    from .files.atomic import file_stem as file_stem
    from .files.atomic import is_standard_output as is_standard_output
    from .files.atomic import write_bytes as write_bytes
    from .files.atomic import write_into as write_into
    from .files.atomic import write_text as write_text
    from .files.csv_files import csv_text as csv_text
    from .files.json_values import replace_non_finite as replace_non_finite
    from .files.locks import FileLock as FileLock
    from .files.locks import GroupLocks as GroupLocks
    from .files.yaml_files import read_yaml as read_yaml
    from .shown_text import one_line as one_line
    from .shown_text import printable as printable
    from .shown_text import shown as shown
    from .suggest import did_you_mean as did_you_mean
    from .suggest import suggest_one_of as suggest_one_of
    from .system_errors import available_bytes as available_bytes
    from .system_errors import explain_full_disk as explain_full_disk
    from .system_errors import explain_unreadable as explain_unreadable
    from .system_errors import is_out_of_memory as is_out_of_memory
    from .system_errors import is_system_error as is_system_error
    from .system_errors import require_memory as require_memory
    from .validation import first_validation_error as first_validation_error
    from .validation import validated as validated
    from .words import counted as counted
    from .words import duration as duration
    from .words import joined as joined
    from .words import listed as listed
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
