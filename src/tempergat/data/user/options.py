"""How a user graph is read: which column is what, and which way edges are followed."""

from dataclasses import dataclass, fields
from typing import Literal, get_args

from tempergat.base import UserError, suggest_one_of

MadeFeatures = Literal["degree", "constant", "random-walk"]
Fill = Literal["median", "most-frequent", "flag"]
Dates = Literal["years", "days"]

# The options that are several names.
# What a gap among words becomes with `fill="flag"`.
GAP = "missing"
NAMES_OPTIONS = ("features", "one_hot", "missing", "drop", "edge_features")
# Compared without regard to case; an empty value is always missing.
MISSING = ("NA", "N/A", "#N/A", "NaN", "None", "null", "?", "-")


@dataclass(frozen=True)
class ReadOptions:
    """How a user graph is read.

    Attributes:
        directed: Whether edges are followed from source to target only; False adds
            the reverse edges, None decides from the edges.
        id: Column of `nodes` that names the nodes; "" where they are named by their
            row number. None decides from the names of the columns and the edges.
        label: Column of `nodes` that holds the classes.
        split_column: Column of `nodes` that holds train, val or test, or one of three
            masks; other columns and tables of a split are then not read. "" where no
            split is read.
        features: Columns of `nodes` that are features; all others when None.
        one_hot: Columns of words, each turned into one 0-1 feature for every word.
            Such a feature is called `column=word`. Columns of edges are among the
            edge features, too.
        missing: Words that stand for a missing value, in any case; an empty value is
            always missing. -1 among them is for labels only.
        drop: Columns of `nodes` or `edges` that are not read.
        fill: What missing values of features become: the median of the column (words:
            the most frequent one), its most frequent value, or the median with a 0-1
            feature that says where values were missing (words: one more word).
        fill_values: Column (of edges: `column of edges`), value and whether it is
            flagged, of each column that was filled in the training graph; a model
            passes them on.
        dates: What features like 2020-12-31 become: the year, or days since 1970.
        make_features: Features to make for a graph that has none.
        source: Column of `edges` with the nodes that edges come from.
        dest: Column of `edges` with the nodes that edges lead to.
        drop_unknown_edges: Whether edges of nodes that `nodes` does not have are left
            out.
        edge_features: Columns of the edges that are edge features.
        edge_weight: Column of the edges that is their weight.
        target: Node type to classify, where several have labels.
        many_classes: Whether a label of many numbers with few nodes each is classes.
    """

    directed: bool | None = None
    id: str | None = None
    label: str | None = None
    split_column: str | None = None
    features: tuple[str, ...] | None = None
    one_hot: tuple[str, ...] = ()
    missing: tuple[str, ...] = MISSING
    make_features: MadeFeatures | None = None
    edge_features: tuple[str, ...] = ()
    edge_weight: str | None = None
    target: str | None = None
    drop: tuple[str, ...] = ()
    fill: Fill | None = None
    fill_values: tuple[tuple[str, float | str, bool], ...] = ()
    dates: Dates | None = None
    source: str | None = None
    dest: str | None = None
    drop_unknown_edges: bool = False
    many_classes: bool = False

    def __post_init__(self) -> None:
        for name in NAMES_OPTIONS:
            value = getattr(self, name)
            if value is None and name == "features":
                continue
            if isinstance(value, str) or not all(isinstance(v, str) for v in value):
                raise UserError(f"{name} is {value!r}; give a sequence of names")
            object.__setattr__(self, name, tuple(value))
        for name, kinds in (
            ("make_features", MadeFeatures),
            ("fill", Fill),
            ("dates", Dates),
        ):
            value, known = getattr(self, name), get_args(kinds)
            if value is not None and value not in known:
                raise UserError(
                    f"{name} is {value!r}; {suggest_one_of(str(value), known)}"
                )

    def given(self) -> list[str]:
        """The names of the options that differ from their defaults."""
        plain = ReadOptions()
        return [
            field.name
            for field in fields(self)
            if getattr(self, field.name) != getattr(plain, field.name)
        ]


def option_flag(name: str) -> str:
    """The option of the command line for a field, like `--split-column`."""
    return f"--{name.replace('_', '-')}"


def in_python(*names: str) -> str:
    """How options of the command line are given in Python, for the end of a remedy."""
    return f"(in Python: ReadOptions({', '.join(f'{name}=...' for name in names)}))"
