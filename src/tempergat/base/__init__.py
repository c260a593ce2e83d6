"""Files, locks, YAML, suggestions and system errors, for all packages; without torch.

`tempergat.base.figures`, the look of the figures, is imported by its own name, because
it loads matplotlib.
"""

from typing import TYPE_CHECKING

from .lazy_packages import lazy_names as lazy_names

if TYPE_CHECKING:
    from .errors import UserError as UserError
    from .errors import available_bytes as available_bytes
    from .errors import explain_full_disk as explain_full_disk
    from .errors import explain_unreadable as explain_unreadable
    from .errors import first_line as first_line
    from .errors import is_out_of_memory as is_out_of_memory
    from .errors import is_system_error as is_system_error
    from .errors import require_memory as require_memory
    from .extras import require_compare as require_compare
    from .extras import what_is_missing as what_is_missing
    from .files import csv_text as csv_text
    from .files import file_stem as file_stem
    from .files import is_standard_output as is_standard_output
    from .files import refuse_pipe as refuse_pipe
    from .files import replace_non_finite as replace_non_finite
    from .files import write_array as write_array
    from .files import write_bytes as write_bytes
    from .files import write_into as write_into
    from .files import write_text as write_text
    from .locks import FileLock as FileLock
    from .locks import GroupLocks as GroupLocks
    from .text import counted as counted
    from .text import did_you_mean as did_you_mean
    from .text import duration as duration
    from .text import joined as joined
    from .text import listed as listed
    from .text import one_line as one_line
    from .text import printable as printable
    from .text import shown as shown
    from .text import suggest_one_of as suggest_one_of
    from .validation import first_validation_error as first_validation_error
    from .validation import validated as validated
    from .yaml_files import read_yaml as read_yaml
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
