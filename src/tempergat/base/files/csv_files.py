"""Tables as CSV text."""

import csv
import io
from collections.abc import Sequence
from typing import Any


def csv_text(lines: Sequence[dict[str, Any]]) -> str:
    """CSV with the first line's keys as headings; None is an empty cell."""
    buffer = io.StringIO()
    writer = csv.DictWriter(
        buffer, list(lines[0]) if lines else [], lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()
