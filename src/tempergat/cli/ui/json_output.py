"""JSON on standard output, in one form for all commands."""

import json
from typing import Any

from tempergat.cli.ui.output import echo


def print_json(value: Any) -> None:
    """Print plain values as JSON.

    Raises:
        ValueError: A number is not finite.
    """
    echo(json.dumps(value, indent=1, allow_nan=False))
