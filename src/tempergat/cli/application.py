"""The application: all commands, and how their errors are printed.

Commands import torch inside themselves, so that help and usage errors come at once. A
mistake of the user ends in one line and status 2, too little memory in one line and
status 1.
"""

import logging
import os
import re
import signal
import sys
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from types import ModuleType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from tempergat import __version__
from tempergat.base import UserError, is_out_of_memory, one_line
from tempergat.cli import compare, data, doctor, predict, stores, train
from tempergat.cli.ui.output import echo
from tempergat.cli.ui.signals import stopped

_FAILED = 1
_BAD_INPUT = 2
# Columns left of a command's name and between it and its summary.
_MARGINS = 4


# Headings of the help page, the commands below them, and the modules that have them. A
# command is the function of its name.
_HEADINGS: dict[str, dict[str, ModuleType]] = {
    "Compare and train": {
        "compare": compare,
        "train": train,
        "predict": predict,
        "explore": predict,
        "report": stores,
        "methods": doctor,
        "recipe": doctor,
        "export": stores,
    },
    "Graphs": {"data": data},
    "This installation": {"doctor": doctor},
}


class _Command(TyperCommand):
    """A command that takes every option once; its help writes arguments as NAME..."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuses an option given twice, of which the last alone would count."""
        given: Any = self.make_parser(ctx).parse_args(args=list(args))[2]
        for option in given:
            times = given.count(option)
            if times > 1 and not option.multiple and not option.is_flag:
                raise typer.BadParameter(
                    f"it is given {times} times and is taken once; a list is one "
                    "value with commas, like a,b",
                    ctx,
                    option,
                )
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line, without the braces of required arguments."""
        pieces = super().collect_usage_pieces(ctx)
        return [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in pieces]

    def get_help(self, ctx: Any) -> str:
        """The help page, without the Python types of lists."""
        # As wide as before, so that the columns stay.
        return re.sub(
            r" <list\[.*?\]>",
            lambda match: "...".ljust(len(match[0])),
            super().get_help(ctx),
        )


def _examples(*commands: str) -> str:
    """Examples as the last part of a help page.

    Args:
        *commands: What a user may type, one command each.
    """
    # Typer joins and wraps lines unless a paragraph starts with this character.
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


class _Commands(TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        longest = max(map(len, self.commands))
        width = formatter.width - longest - _MARGINS
        for heading, names in _HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (n.ljust(longest), self.commands[n].get_short_help_str(width))
                        for n in names
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
    epilog=_examples(
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


def _register(group: typer.Typer, name: str, command: Any, *examples: str) -> None:
    group.command(name, cls=_Command, epilog=_examples(*examples))(command)


for _commands in _HEADINGS.values():
    for _word, _module in _commands.items():
        if _module is not data:
            _register(app, _word, vars(_module)[_word], *_module.EXAMPLES[_word])
_family = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
for _word, (_command, _typed) in data.COMMANDS.items():
    _register(_family, _word, _command, *_typed)
app.add_typer(
    _family,
    name="data",
    help="Datasets, and your own graphs.",
    epilog=_examples(*data.EXAMPLES["data"]),
)


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
        with ExitStack() as silence:
            if _rank():
                # Of the processes that torchrun starts, only the first prints, but for
                # errors.
                nowhere = silence.enter_context(open(os.devnull, "w"))
                silence.enter_context(redirect_stdout(nowhere))
                silence.enter_context(redirect_stderr(nowhere))
            app()
    except UserError as error:
        status = getattr(error, "exit_status", _BAD_INPUT)
        _fail(str(error), status, is_said=getattr(error, "is_said", False))
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


def _rank() -> int:
    rank = os.environ.get("RANK", "0") if "TORCHELASTIC_RUN_ID" in os.environ else "0"
    return int(rank)


def _fail(message: str, status: int = _BAD_INPUT, *, is_said: bool = False) -> NoReturn:
    # torchrun stops the others when one fails; there is nothing more to say.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    who = f"tempergat (rank {_rank()})" if _rank() else "tempergat"
    if not is_said:
        echo(f"{who}: {one_line(message)}", err=True)
    sys.exit(status)
