"""The application: all commands, and how their errors are printed.

Commands import torch inside themselves, so that help and usage errors come at once. A
mistake of the user ends in one line and status 2, too little memory in one line and
status 1.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import ModuleType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from tempergat import __version__
from tempergat.base import UserError, is_out_of_memory, one_line
from tempergat.cli import (
    compare,
    data,
    diagnose,
    doctor,
    explore,
    export,
    merge,
    methods,
    predict,
    report,
    train,
)
from tempergat.cli.options.help_text import HelpCommand, examples
from tempergat.cli.ui.output import echo
from tempergat.cli.ui.stopping import stopped

_FAILED = 1
_BAD_INPUT = 2
# Columns left of a command's name and between it and its summary.
_MARGINS = 4


# Headings of the help page, and the modules whose commands it lists below them.
_FAMILIES: dict[str, tuple[ModuleType, ...]] = {
    "Compare and train": (
        compare,
        train,
        predict,
        explore,
        report,
        methods,
        merge,
        export,
    ),
    "Graphs": (data, diagnose),
    "This installation": (doctor,),
}


class _Commands(TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        longest = max(map(len, self.commands))
        for heading, families in _FAMILIES.items():
            # A module is called like its command.
            names = [family.__name__.rpartition(".")[2] for family in families]
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (
                            name.ljust(longest),
                            self.commands[name].get_short_help_str(
                                formatter.width - longest - _MARGINS
                            ),
                        )
                        for name in names
                    ]
                )

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            # Typer would exit with 130 whatever the signal, and say nothing.
            raise typer.Exit(stopped(stop)) from stop


app = typer.Typer(
    name="tempergat",
    cls=_Commands,
    help="Graph attention with a learnable softmax temperature and feature gates: "
    "which method wins on a graph, and is it real?",
    epilog=examples(
        "tempergat compare cora",
        "tempergat compare path/to/my/graph --methods gat,temp_gated",
        "tempergat compare --help",
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"tempergat {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None: ...


for _families in _FAMILIES.values():
    for _family in _families:
        _family.register(app)
for _group in (app, *(info.typer_instance for info in app.registered_groups)):
    for _command in _group.registered_commands if _group else ():
        _command.cls = HelpCommand


def run() -> None:
    """Run the command of `sys.argv`.

    Raises:
        SystemExit: The command has ended, in whatever way a user can cause.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal without ± prints a question mark; the default is to raise.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    # Read when torch is loaded. By default waiting threads spin, which slows other
    # processes and each other: a sweep beside other work took ten times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Without this it prints long warnings where the home folder is read-only.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        with _silence_of_other_ranks():
            app()
    except UserError as error:
        _fail(str(error), getattr(error, "exit_status", _BAD_INPUT))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}")
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        _fail(
            "out of memory; free some, or choose a smaller graph or narrower layers",
            _FAILED,
        )


@contextmanager
def _silence_of_other_ranks() -> Iterator[None]:
    """Of the processes that torchrun starts, only the first prints, but for errors."""
    if _rank() == 0:
        yield
        return
    with (
        open(os.devnull, "w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        yield


def _rank() -> int:
    rank = os.environ.get("RANK", "0") if "TORCHELASTIC_RUN_ID" in os.environ else "0"
    return int(rank)


def _fail(message: str, status: int = _BAD_INPUT) -> NoReturn:
    who = f"tempergat (rank {_rank()})" if _rank() else "tempergat"
    echo(f"{who}: {one_line(message)}", err=True)
    sys.exit(status)
