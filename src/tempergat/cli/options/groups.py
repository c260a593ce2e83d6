"""Options that several commands share as a group: settings, and how a graph is read."""

import csv
import inspect
from collections.abc import Callable, Mapping
from dataclasses import make_dataclass
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from tempergat.cli.options.shared import complete_method, complete_methods
from tempergat.comparison import FLAGS
from tempergat.training import OPTIONS, help_of, typed_as

if TYPE_CHECKING:
    from tempergat.data import ReadOptions
    from tempergat.training import Overrides


def _words(help_text: str) -> Any:
    return Annotated[str | None, typer.Option(help=help_text)], None


def _flag(flags: str, help_text: str, default: bool | None = False) -> Any:
    return Annotated[bool | None, typer.Option(flags, help=help_text)], default


# The options that say how a user graph is read.
_READING: dict[str, Any] = {
    "directed": _flag(
        "--directed/--undirected",
        "Whether edges of your graph are followed one way or both ways; decided from "
        "the edges when left out.",
        None,
    ),
    "id": _words("Column of nodes.csv that names the nodes."),
    "label": _words("Column of nodes.csv with the classes."),
    "many_classes": _flag(
        "--many-classes",
        "Take a label of many numbers with few nodes each for classes.",
    ),
    "split_column": _words("Column of nodes.csv that says train, val or test."),
    "features": _words("Feature columns, like a,b; all others when left out."),
    "one_hot": _words("Columns of words that become a 0-1 feature for every word."),
    "missing": _words("Words for a missing value, like NA,?; common ones by default."),
    "drop": _words("Columns of your tables that are not read, like a,b."),
    "fill": _words(
        "What missing features become: median, most-frequent, or flag (the median and "
        "a 0-1 feature that says so)."
    ),
    "dates": _words("What dates like 2020-12-31 become: years or days."),
    "make_features": _words(
        "Features for a graph without any: degree, constant or random-walk."
    ),
    "source": _words("Column of edges.csv where edges come from."),
    "dest": _words("Column of edges.csv where edges lead to."),
    "drop_unknown_edges": _flag(
        "--drop-unknown-edges",
        "Leave out edges of nodes that nodes.csv does not have.",
    ),
    "edge_features": _words("Columns of edges.csv that are edge features."),
    "edge_weight": _words(
        "Column of edges.csv that is the edge weight: in the adjacency matrix of gcn, "
        "a factor of attention weights in all others but mlp."
    ),
    "target": _words(
        "Node type to classify in a typed graph, where several have labels."
    ),
    "scale": _flag(
        "--scale/--no-scale",
        "Whether columns of numbers in your tables are centred and divided by their "
        "deviation for training. Columns of 0 and 1 stay as they are.",
        True,
    ),
}
_COMPLETIONS = {"methods": complete_methods, "baseline": complete_method}
_SET = typer.Option(
    "--set",
    help="Any setting, as often as you like; `tempergat methods --settings` lists "
    "them.",
    metavar="NAME=VALUE",
)
# Lists of names.
_LISTS = ("features", "one_hot", "missing", "drop", "edge_features")


class OptionGroup(dict[str, Any]):
    """Options by name, as a user gave them; those not given are None.

    Attributes:
        OPTIONS: What Typer is told of each, and its default.
    """

    OPTIONS: ClassVar[Mapping[str, Any]]

    @property
    def given(self) -> dict[str, Any]:
        """The options that have a value."""
        return {name: value for name, value in self.items() if value is not None}


class ReadingOptions(OptionGroup):
    """The options that say how a user graph is read."""

    OPTIONS = _READING

    def options(self) -> "ReadOptions":
        """The options as `tempergat.data` takes them.

        Raises:
            UserError: An option has no such value.
        """
        from tempergat.data import ReadOptions

        given = self.given
        del given["scale"]
        for name in _LISTS:
            if name in given:
                # Quotes hold a name with a comma.
                parts = next(csv.reader([given[name]], skipinitialspace=True), [])
                names = dict.fromkeys(part.strip() for part in parts if part.strip())
                given[name] = tuple(names)
        return ReadOptions(**given)


class Settings(OptionGroup):
    """The options that change settings of a recipe."""

    OPTIONS: ClassVar[Mapping[str, Any]] = {
        name: (Annotated[typed_as(name) | None, typer.Option(help=help_of(name))], None)
        for name in OPTIONS
    } | {"set": (Annotated[list[str] | None, _SET], None)}

    def overrides(self) -> "Overrides":
        """The options as `tempergat.training` takes them.

        Raises:
            UserError: A value is out of its range.
        """
        from tempergat.training import make_overrides

        given = self.given
        written = given.pop("set", ())
        return make_overrides(given, written=written)


def with_options(
    **after: tuple[str | type[OptionGroup], ...],
) -> Callable[[Callable[..., None]], type]:
    """Gives a command options: arguments of `compare` by their names, and groups.

    The command takes what they give as keyword-only arguments. Typer reads the fields
    of the class returned, and makes an object of it, which runs the command.

    Args:
        **after: By parameter of the command, the options that follow it in the help.
    """

    def with_them(command: Callable[..., None]) -> type:
        fields: list[Any] = []
        groups = {}
        wanted = {one for options in after.values() for one in options}
        for name, own in inspect.signature(command, eval_str=True).parameters.items():
            if own.annotation in wanted:
                groups[name] = own.annotation
            elif own.kind is Parameter.POSITIONAL_OR_KEYWORD:
                default = () if own.default is Parameter.empty else (own.default,)
                fields.append((name, own.annotation, *default))
            for one in after.get(name, ()):
                told = {one: _argument(one)} if isinstance(one, str) else one.OPTIONS
                fields += [(each, *kind) for each, kind in told.items()]

        def run(self: object) -> None:
            given = dict(vars(self))
            for name, group in groups.items():
                given[name] = group({one: given.pop(one) for one in group.OPTIONS})
            command(**given)

        members = {"__doc__": command.__doc__, "__post_init__": run}
        return make_dataclass(command.__name__, fields, kw_only=True, namespace=members)

    return with_them


def _argument(name: str) -> tuple[Any, Any]:
    """The option for an argument of `compare`, and its default."""
    flag = FLAGS[name]
    default = str(flag.default) if name == "runs" else flag.default
    option = typer.Option(
        help=flag.help,
        metavar=flag.metavar,
        min=flag.least,
        autocompletion=_COMPLETIONS.get(name),
    )
    return Annotated[flag.typed | None, option], default
