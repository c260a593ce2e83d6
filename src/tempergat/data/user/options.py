"""How a user graph is read: which column is what, and which way edges are followed."""

from dataclasses import dataclass, fields
from typing import Literal, get_args

from tempergat.base import UserError, suggest_one_of

MadeFeatures = Literal["degree", "constant", "random-walk"]

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
            Such a feature is called `column=word`.
        missing: Words that stand for a missing value, in any case; an empty value is
            always missing. -1 among them is for labels only.
        make_features: Features to make for a graph that has none.
        edge_features: Columns of the edges that are edge features.
        edge_weight: Column of the edges that is their weight.
        target: Node type to classify, where several have labels.
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

    def __post_init__(self) -> None:
        for name in ("features", "one_hot", "missing", "edge_features"):
            value = getattr(self, name)
            if value is None and name == "features":
                continue
            if isinstance(value, str) or not all(isinstance(v, str) for v in value):
                raise UserError(f"{name} is {value!r}; give a sequence of names")
            object.__setattr__(self, name, tuple(value))
        known = get_args(MadeFeatures)
        if self.make_features is not None and self.make_features not in known:
            raise UserError(
                f"make_features is {self.make_features!r}; "
                f"{suggest_one_of(str(self.make_features), known)}"
            )

    def given(self) -> list[str]:
        """The names of the options that differ from their defaults."""
        plain = ReadOptions()
        return [
            field.name
            for field in fields(self)
            if getattr(self, field.name) != getattr(plain, field.name)
        ]


class Problems:
    """What is wrong with a graph: raised at once, or collected for a report.

    Attributes:
        errors: What was collected.
    """

    def __init__(self, collect: bool = False) -> None:
        self.collect = collect
        self.errors: list[UserError] = []

    def add(self, error: UserError) -> None:
        """Raises a problem, or collects it where reading can go on after it."""
        if not self.collect:
            raise error
        self.errors.append(error)


def missing_words(options: ReadOptions) -> frozenset[str]:
    """The words that stand for a missing value, in lower case."""
    return frozenset({"", *(word.strip().lower() for word in options.missing)})


def missing_numbers(options: ReadOptions) -> frozenset[str]:
    """The words that stand for a missing value in columns of numbers.

    -1 is not among them: a label of -1 is often unknown, a feature of -1 is a number.
    """
    return missing_words(options) - {"-1"}


def option_flag(name: str) -> str:
    """The option of the command line for a field, like `--split-column`."""
    return f"--{name.replace('_', '-')}"


def in_python(*names: str) -> str:
    """How options of the command line are given in Python, for the end of a remedy."""
    return f"(in Python: ReadOptions({', '.join(f'{name}=...' for name in names)}))"
