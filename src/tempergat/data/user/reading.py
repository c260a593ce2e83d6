"""One reading of a user graph: what every reader is given, and what it returns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tempergat.base import UserError
from tempergat.data.dataset import Dataset, HowRead, Target
from tempergat.data.user.options import ReadOptions


class Question(UserError):
    """A problem with a graph that options settle.

    Args:
        message: What is wrong, and the remedy.
        **options: Options of `ReadOptions` that settle it. Names are added to those
            that are given.
    """

    def __init__(self, message: str, **options: Any) -> None:
        super().__init__(message)
        self.options = options


class OtherIds(UserError):
    """Edges name nodes in another way than by what counts as their ids."""


class NoLabels(UserError):
    """A graph without any label, which can only be predicted on."""


class OwnLabels(UserError):
    """Labels that are no classes: almost every node has its own."""


@dataclass(frozen=True)
class Reading:
    """How a user graph is read, and what comes up on the way.

    Attributes:
        name: What errors and notes call the graph.
        options: How it is read.
        labelled: Whether there must be labels; otherwise neither labels nor splits are
            read.
        use_masks: Whether a split that the graph comes with is its split; otherwise
            one is made.
        collect: Whether what is wrong is collected for a report, where reading can go
            on after it; otherwise it is raised.
        errors: What was collected.
        notes: A sentence for each guess or omission that changes results.
        learned: Options that the tables show, like an `id` that only the edges show;
            a model passes them on.
    """

    name: str
    options: ReadOptions = field(default_factory=ReadOptions)
    labelled: bool = True
    use_masks: bool = True
    collect: bool = False
    errors: list[UserError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    learned: dict[str, Any] = field(default_factory=dict)

    def problem(self, error: UserError) -> None:
        """Raises what is wrong, or collects it."""
        if not self.collect:
            raise error
        self.errors.append(error)

    @cached_property
    def missing(self) -> frozenset[str]:
        """The words that stand for a missing value, in lower case."""
        words = (word.strip().lower() for word in self.options.missing)
        return frozenset({"", *words})

    @property
    def edge_columns(self) -> set[str | None]:
        """The columns of edges that the options name."""
        return {*self.options.edge_features, self.options.edge_weight}

    def with_options(self, **options: Any) -> "Reading":
        """The same reading with other options."""
        return replace(self, options=replace(self.options, **options))


@dataclass(frozen=True, kw_only=True)
class UserGraph(Dataset):
    """A graph as its files give it, before it is checked and has a split.

    The attributes of `Dataset` that a reader does not know keep the values below.
    `undirected` is what the file says about its edges; None where it says nothing. A
    homogeneous graph holds `edge_attr` (float32, edges x columns) and `edge_weight`
    (float32, edges) only where `edge_feature_names` and `edge_weight_name` say so.

    Attributes:
        how_read: What the files were taken for.
        keeps_direction: Whether edges are followed as they are listed, like those of
            a PyG object; otherwise a list of one-way edges is taken for an undirected
            graph.
        mapped_hashes: sha256 of the edges and features of a graph that are mapped into
            memory; they have been checked, and are used as they are. Empty for all
            other graphs.
        has_columns: Whether the features are columns of tables, which are scaled for
            training; others are used as given.
    """

    name: str = ""
    target: str | None = None
    # Its width is known when labels are checked.
    predicted: Target = field(default_factory=lambda: Target(0))
    metric: str = "accuracy"
    source: str = ""
    fingerprint: str = ""
    license: str = "the user's"
    how_read: HowRead = field(default_factory=HowRead)
    keeps_direction: bool = False
    mapped_hashes: Mapping[str, str] = field(default_factory=dict)
    has_columns: bool = False

    def not_reading(self, names: Iterable[str]) -> "UserGraph":
        """The graph, where more files, columns or arrays are not used."""
        not_read = (*self.how_read.not_read, *names)
        return replace(self, how_read=replace(self.how_read, not_read=not_read))
