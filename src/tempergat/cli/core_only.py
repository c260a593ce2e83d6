"""The command where layers can be used and commands cannot: `doctor` alone."""

import sys

from tempergat import __version__
from tempergat.base import what_is_missing
from tempergat.cli.examination import print_findings
from tempergat.cli.ui.output import echo


def run() -> None:
    """Run the command of `sys.argv`; all but `doctor` says in a line what it needs."""
    match sys.argv[1:]:
        case ["doctor"]:
            print_findings(as_json=False)
        case ["doctor", "--json"]:
            print_findings(as_json=True)
        case ["--version"]:
            echo(f"tempergat {__version__}")
        case [] | [*_, "--help" | "-h"]:
            echo("Usage: tempergat doctor [--json] | --version | --help\n")
            echo(f"{what_is_missing('Every other command')}")
        case [command, *_]:
            echo(f"tempergat: {what_is_missing(f'tempergat {command}')}", err=True)
            sys.exit(2)
