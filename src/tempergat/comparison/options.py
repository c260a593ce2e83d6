"""Every argument of `compare`, once: its type, default and check, and what it does.

The function, its documentation, the plan and the options of commands are made from
here, without torch, so that help comes at once.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, get_args

from tempergat.base import UserError

if TYPE_CHECKING:
    import torch

    from tempergat.comparison.plan import MethodsArgument, SeveralGraphs
    from tempergat.data import GraphInput, ReadOptions
    from tempergat.training import Preparation, Recipe

_Function = TypeVar("_Function", bound=Callable[..., Any])
MOST_RUNS = 100_000


class Flag(NamedTuple):
    """Commands have an option for the argument, of this type where it is typed."""

    help: str
    typed: Any = str
    default: Any = None
    metavar: str | None = None
    least: int | None = None


class UpTo(NamedTuple):
    """The argument is a number from 1 to the most, or the value besides."""

    most: int
    besides: str | None = None
    words: str = "a number"

    def check(self, name: str, value: object) -> None:
        """Raise for another value."""
        is_number = isinstance(value, int) and 1 <= value <= self.most
        if value != self.besides and not is_number:
            raise UserError(
                f"{name} is {value!r}; give {self.words} from 1 to {self.most}"
            )


@dataclass(frozen=True)
class CompareOptions:
    """What `compare` is given.

    Attributes:
        graph: A name (`tempergat data list`), the path of a graph, a PyG `Data` or a
            `Dataset`; a generated graph with noisy features when left out. A list of
            them is compared on one after another, each with its own recipe and metric;
            a mapping gives them names. All of them are read before the first is trained
            on.
        methods: Names of methods (`tempergat methods`), callables
            `(in_channels, out_channels) -> Module` whose module is called as
            `module(x, edge_index)`, or a mapping from names to such callables; `mlp`
            and the paper's eleven methods when left out.
        runs: Seeds per method. `paper` for as many as the recipe says, and for the
            paper's eleven methods alone unless `methods` names others.
        recipe: The settings: a recipe, its name or its YAML file; the recipe of the
            dataset when left out. Methods on graphs without one are trained with
            `plain` and with `default`, which has a residual in every layer and batch
            norm between layers, and validation scores choose.
        baseline: The method all others are compared with. When left out, each variant
            is compared with its backbone, besides the tests of all pairs of methods.
        device: `auto`, `cpu` or `cuda`.
        out: A folder that keeps the runs, the tables and the figure: the same call
            continues from there. Nothing is kept when left out.
        progress: Whether to print the progress to standard error.
        split: The number of an official split, or percentages like `60/20/20`.
        split_seed: Seed of a split made here.
        splits: How many splits to make for a graph that comes with none. The seeds
            take turns over them, and tests are paired over splits. In a list of graphs,
            those that come with splits keep them.
        read_options: How a user graph is read; the defaults when left out.
        scale: Whether the columns of numbers of tables are scaled: centred and divided
            by their deviation over all nodes. Other graphs are used as given.
        metric: The score to report: `accuracy`, `macro_f1`, `roc_auc` or
            `average_precision`; the dataset's metric when left out. A recipe with
            `best_val_accuracy` also selects the epoch by it. The last two are those of
            class 1 where there are two classes, and otherwise the mean over
            classes of each against the rest; a class without nodes in a part is left
            out of the mean.
        class_weights: `balanced` gives every class the same weight in the loss,
            however few training nodes it has.
        settings: Settings in place of the recipe's, for all methods that have them,
            like `{"epochs": 50, "gate_penalty": 1e-6}`; `tempergat methods --settings`
            lists them. `training="sampled"` with `fanout`, `batch_size` and
            `eval_batch_size` is for large graphs.
        ray: Train on the machines of a Ray cluster: `auto` for the one that runs on
            this machine, or `HOST:PORT` of its head. Needs `pip install
            'tempergat[ray]'` on every machine. Only this process writes to `out`.
        tune: How many settings to try for each method before the comparison, by mean
            validation score over two seeds; the first are the recipe's own. Every split
            has its own search, on its own validation nodes, and the runs compared have
            seeds that no search uses. Learning rate, weight decay, dropout, residual
            and norm are searched, unless `settings` gives them. The settings found are
            recipes, by split, in `tuned_recipes` of the result and as files in `out`.
            Needs `pip install 'tempergat[tune]'`.
        noise: Noise on the features of every run: `gaussian:0.5` adds Gaussian noise
            of half their root mean square, `missing:0.3` sets 30 % of the values to 0,
            `missing:0.3,tau=1` to Gaussian noise of one root mean square. A list of one
            of each kind gives both, Gaussian noise first. Every seed has its own noise,
            the same for all methods.
        prepare: What else is done to features or model before every run.

    Raises:
        UserError: A value is out of its range, or two do not go together.
    """

    graph: "GraphInput | SeveralGraphs" = "demo"
    methods: Annotated[
        "MethodsArgument",
        Flag("Methods like gat,temp_gated; the paper's eleven and mlp when left out."),
    ] = None
    runs: Annotated[
        int | Literal["paper"],
        Flag(
            "Seeds per method; paper for as many as the recipe, and for the paper's "
            "methods alone."
        ),
        UpTo(MOST_RUNS, "paper"),
    ] = 10
    recipe: Annotated[
        "str | Path | Recipe | None",
        Flag(
            "Settings: the name of a recipe or a YAML file; the dataset's own when "
            "left out. Graphs without one have default, with a residual in every layer "
            "and batch norm between layers; compare tries plain too, which has neither."
        ),
    ] = None
    baseline: Annotated[
        str | None,
        Flag(
            "The method all others are compared with; each variant's backbone when "
            "left out."
        ),
    ] = None
    device: Annotated[
        "str | torch.device", Flag("auto, cpu or cuda (cuda:1 for the second).")
    ] = "auto"
    out: Annotated[
        str | Path | None,
        Flag("Folder for everything that is written.", Path, Path("tempergat-out")),
    ] = None
    progress: bool = True
    split: Annotated[
        int | str | None,
        Flag(
            "Number of an official split, or percentages like 60/20/20 of one made "
            "here."
        ),
    ] = None
    split_seed: Annotated[
        int | None, Flag("Seed of a split made here.", int, least=0)
    ] = None
    splits: Annotated[
        int | None,
        Flag(
            "Number of splits to make for a graph that comes with none; the runs take "
            "turns over them. Of several graphs, those with splits keep them.",
            int,
        ),
    ] = None
    read_options: "ReadOptions | None" = None
    scale: bool = True
    metric: str | None = None
    class_weights: str | None = None
    settings: Mapping[str, Any] | None = None
    ray: Annotated[
        str | None,
        Flag(
            "Train on a Ray cluster: auto for the one on this machine, or the address "
            "of its head.",
            metavar="auto|HOST:PORT",
        ),
    ] = None
    tune: Annotated[
        int | None,
        Flag(
            "Settings to try for each method beforehand, by validation score; the runs "
            "compared have other seeds.",
            int,
            metavar="N",
        ),
        UpTo(10_000, words="how many settings to try for each method,"),
    ] = None
    noise: Annotated[
        str | Sequence[str] | None,
        Flag(
            "Noise on the features of every run: gaussian:0.5 adds Gaussian noise of "
            "half their root mean square, missing:0.3 sets 30 % of the values to 0, "
            "missing:0.3,tau=1 to noise of one root mean square. Once more for both "
            "kinds, Gaussian noise first.",
            list[str],
            metavar="KIND:LEVEL",
        ),
    ] = None
    prepare: "Preparation | None" = None

    def __post_init__(self) -> None:
        for name, argument in ARGUMENTS.items():
            for said in get_args(argument.type):
                if isinstance(said, UpTo):
                    said.check(name, getattr(self, name))
        if self.noise is not None and self.prepare is not None:
            raise UserError(
                "noise is itself a preparation; give noise or prepare, not both"
            )


ARGUMENTS = {one.name: one for one in fields(CompareOptions)}
# What commands have an option for, each with its default there.
FLAGS = {
    name: said._replace(default=said.default or argument.default)
    for name, argument in ARGUMENTS.items()
    for said in get_args(argument.type)
    if isinstance(said, Flag)
}


def documented(function: _Function) -> _Function:
    """Shows the arguments in the help and the documentation of a function as its own.

    The function takes them, and settings, as `*arguments` and `**keywords`. In its
    docstring they take the place of `OPTIONS`.
    """
    shown = [*inspect.signature(CompareOptions).parameters.values()]
    for place, one in enumerate(shown):
        kind = getattr(one.annotation, "__origin__", one.annotation)
        shown[place] = one.replace(annotation=getattr(kind, "__forward_arg__", kind))
    signature = inspect.signature(function)
    shown.append(signature.parameters["keywords"])
    function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    # Python with -OO has no docstrings.
    text = (CompareOptions.__doc__ or "").partition("Attributes:\n")[2]
    text = text.partition("\n\n")[0].strip()
    function.__doc__ = (function.__doc__ or "").replace("OPTIONS", text)
    return function
