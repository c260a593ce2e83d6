"""The options that say how a user graph is read, the same for all commands."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.cli.options.groups import with_option_group

if TYPE_CHECKING:
    from tempergat.data import ReadOptions

_Directed = Annotated[
    bool | None,
    typer.Option(
        "--directed/--undirected",
        help="Whether edges of your graph are followed one way or both ways; decided "
        "from the edges when left out.",
        show_default=False,
    ),
]
_Id = Annotated[
    str | None, typer.Option("--id", help="Column of nodes.csv that names the nodes.")
]
_Label = Annotated[
    str | None, typer.Option("--label", help="Column of nodes.csv with the classes.")
]
_SplitColumn = Annotated[
    str | None,
    typer.Option(
        "--split-column", help="Column of nodes.csv that says train, val or test."
    ),
]
_Features = Annotated[
    str | None,
    typer.Option(
        "--features", help="Feature columns, like a,b; all others when left out."
    ),
]
_OneHot = Annotated[
    str | None,
    typer.Option(
        "--one-hot", help="Columns of words that become a 0-1 feature for every word."
    ),
]
_Missing = Annotated[
    str | None,
    typer.Option(
        "--missing",
        help="Words for a missing value, like NA,?; common ones by default.",
    ),
]
_MakeFeatures = Annotated[
    str | None,
    typer.Option(
        "--make-features",
        help="Features for a graph without any: degree, constant or random-walk.",
    ),
]
_EdgeFeatures = Annotated[
    str | None,
    typer.Option(
        "--edge-features", help="Columns of edges.csv that are edge features."
    ),
]
_EdgeWeight = Annotated[
    str | None,
    typer.Option("--edge-weight", help="Column of edges.csv that is the edge weight."),
]
_Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="Node type to classify in a typed graph, where several have labels.",
    ),
]
_Scale = Annotated[
    bool,
    typer.Option(
        "--scale/--no-scale",
        help="Whether columns of numbers in your tables are centred and divided by "
        "their deviation for training. Columns of 0 and 1 stay as they are.",
    ),
]


@dataclass(frozen=True)
class Reading:
    """The options as the user wrote them."""

    directed: _Directed = None
    id: _Id = None
    label: _Label = None
    split_column: _SplitColumn = None
    features: _Features = None
    one_hot: _OneHot = None
    missing: _Missing = None
    make_features: _MakeFeatures = None
    edge_features: _EdgeFeatures = None
    edge_weight: _EdgeWeight = None
    target: _Target = None
    scale: _Scale = True

    def options(self) -> "ReadOptions":
        """The options as `tempergat.data` takes them.

        Raises:
            UserError: An option has no such value.
        """
        from tempergat.data import ReadOptions

        given: dict[str, Any] = {
            name: value for name, value in vars(self).items() if value is not None
        }
        del given["scale"]
        for name in ("features", "one_hot", "missing", "edge_features"):
            if name in given:
                given[name] = _names(given[name])
        return ReadOptions(**given)


def _names(text: str) -> tuple[str, ...]:
    """The names in a list like `a,b`; quotes hold a name with a comma."""
    parts = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options to a command, which receives them as its argument `reading`."""
    return with_option_group(command, "reading", Reading)
