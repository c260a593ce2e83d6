"""What is compared with what, and with which settings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, TypeAlias

from tempergat.base import UserError
from tempergat.comparison.options import MOST_RUNS, CompareOptions
from tempergat.comparison.paper import PAPER_METHODS
from tempergat.comparison.search import require_optuna
from tempergat.data import Dataset, GraphInput, load_splits
from tempergat.data import Progress as DownloadProgress
from tempergat.nn import METHODS
from tempergat.training import (
    BuildModule,
    Overrides,
    Preparation,
    Recipe,
    RunConfig,
    callable_name,
    load_recipe,
    make_overrides,
    parse_noise,
    recipe_for,
    refuse_other_training,
    refuse_untrainable,
    settings_on,
    source_hash,
)

# Searches use seeds from MOST_RUNS on, and runs with searched settings have these.
FIRST_TUNED_SEED = 2 * MOST_RUNS

# The method without edges stands first: it is what the edges are measured by.
DEFAULT_METHODS = ("mlp", *PAPER_METHODS)

_Methods = str | BuildModule | Iterable[str | BuildModule] | Mapping[str, BuildModule]
MethodsArgument = _Methods | None
# Not any sequence: a text is a sequence of texts, and stands for one graph.
SeveralGraphs: TypeAlias = list[Any] | tuple[GraphInput, ...] | Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is compared with what, and with which settings.

    Attributes:
        methods: Names of the methods, in the order of the table.
        configs: The settings of each; before them those of `plain`, where the graph has
            no recipe of its own.
        seeds: One run of each method per seed.
        options: What `compare` was given, with this graph alone.
        recipe: Name of the recipe.
        base: The recipe.
        made_for: The dataset the recipe was made for, where it is another one.
        overrides: What was changed in it.
        builds: For each of the user's own methods, the callable that builds it.
        preparation: What is done to features and model before every run.
        graphs: The graph with each of its splits, by the splits' numbers; empty before
            it is read.
    """

    methods: tuple[str, ...]
    configs: tuple[RunConfig, ...]
    seeds: tuple[int, ...]
    options: CompareOptions
    recipe: str
    base: Recipe
    made_for: str | None = None
    overrides: Overrides = field(default_factory=make_overrides)
    builds: Mapping[str, BuildModule] = field(default_factory=dict)
    preparation: Preparation | None = None
    graphs: Mapping[int, Dataset] = field(default_factory=dict)

    @property
    def first_graph(self) -> Dataset:
        """The graph with the first of its splits."""
        return next(iter(self.graphs.values()))

    @property
    def selection(self) -> str:
        """The rule that chooses the epoch whose score counts."""
        return self.configs[0].selection

    @property
    def total_runs(self) -> int:
        """Runs of all methods together."""
        return len(self.configs) * len(self.seeds)

    @property
    def against(self) -> dict[str, str]:
        """The baseline of each method that has one."""
        return baselines_of(self.methods, self.options.baseline)


def baselines_of(methods: Sequence[str], baseline: str | None) -> dict[str, str]:
    """The baseline of each method that has one.

    Args:
        methods: The methods that are compared, in order.
        baseline: The method all others are compared with; None where each variant is
            compared with its backbone.
    """
    pairs = {name: baseline or backbone_of(name) for name in methods}
    return {name: other for name, other in pairs.items() if name != other}


def has_choice(method: str, training: str | None) -> bool:
    """Whether a method can have a residual or none; sampled training has one recipe."""
    known = method in METHODS and not METHODS[method].always_skips
    return known and training == "full"


def backbone_of(method: str) -> str:
    """The backbone of a method; of a user's own one, its name."""
    return METHODS[method].backbone if method in METHODS else method


def make_plan(options: CompareOptions, overrides: Overrides | None = None) -> Plan:
    """Check and complete what the user asked for, before any work is done.

    Args:
        options: What `compare` was given, with a single graph.
        overrides: The settings in place of the recipe's.

    Raises:
        UserError: A method, recipe or noise does not exist, the recipe's methods select
            epochs by different rules, or Optuna is missing for `tune`.
    """
    graph: Any = options.graph
    recipe, baseline, tune = options.recipe, options.baseline, options.tune
    default = PAPER_METHODS if options.runs == "paper" else DEFAULT_METHODS
    chosen = _named_methods(default if options.methods is None else options.methods)
    if baseline is not None and baseline not in chosen:
        chosen = {baseline: None, **chosen}
    recipe_name, settings = recipe_for(graph, recipe)
    overrides = overrides or make_overrides()
    overrides.notes_for(chosen)
    has_two = recipe is None and recipe_name == "default" and tune is None
    # What the two recipes differ in is given.
    has_two = has_two and not {"residual", "norm"} & overrides.fields.keys()
    recipes = [*([load_recipe("plain")] if has_two else []), settings]
    configs = [
        config
        for one in recipes
        for name, build in chosen.items()
        for own in [None if build is None else source_hash(build)]
        for config in [overrides.applied_to(one.config_for(name, own), graph)]
        if one is settings or has_choice(name, config.training)
    ]
    rules = sorted({config.selection for config in configs})
    if len(rules) > 1:
        raise UserError(
            f"recipe {recipe_name} selects epochs by {' and by '.join(rules)}; scores "
            "are comparable under one rule only, so use one selection throughout"
        )
    if options.runs == "paper":
        options = replace(options, runs=settings.runs)
    assert options.runs != "paper"
    first = 0
    if tune is not None:
        require_optuna()
        first = FIRST_TUNED_SEED
    return Plan(
        methods=tuple(chosen),
        configs=tuple(configs),
        seeds=tuple(range(first, first + options.runs)),
        options=options,
        recipe="plain or default" if len(configs) > len(chosen) else recipe_name,
        base=settings,
        made_for=None if recipe is None else settings.made_for_another(graph),
        overrides=overrides,
        builds={name: build for name, build in chosen.items() if build is not None},
        preparation=options.prepare
        if options.noise is None
        else parse_noise(options.noise),
    )


def read_graphs(
    plans: Sequence[Plan],
    *,
    several: bool = False,
    names: Sequence[str] | None = None,
    progress: DownloadProgress | None = None,
) -> list[Plan]:
    """Read the graph of every plan, and refuse what cannot be compared on.

    Args:
        plans: What to compare.
        several: Whether a list of graphs was asked for: those that come with splits
            keep them where `splits` is given.
        names: What each graph is called; None for the names that they have.
        progress: Told of downloads.

    Returns:
        The plans with their graphs, and with settings that only a graph can tell.

    Raises:
        UserError: A graph cannot be read, is given twice, or cannot be trained on with
            its settings.
    """
    complete, known = [], dict[str, str]()
    for name, plan in zip(names or repeat(None), plans, strict=False):
        is_name = isinstance(name, str) and name.strip() and name.isprintable()
        if names is not None and not is_name:
            raise UserError(f"a graph is called {name!r}; give it a name in words")
        options = plan.options
        graphs = load_splits(
            plan.options.graph,
            max_splits=len(plan.seeds),
            made_splits=options.splits,
            keep_given_splits=several,
            split=options.split,
            split_seed=options.split_seed,
            options=options.read_options,
            scale=options.scale,
            progress=progress,
        )
        if name is not None:
            graphs = {n: replace(one, name=name) for n, one in graphs.items()}
        first = next(iter(graphs.values()))
        configs = tuple(settings_on(config, first) for config in plan.configs)
        complete.append(replace(plan, configs=configs, graphs=graphs))
    for plan in complete:
        graph = plan.first_graph
        identity = graph.graph_fingerprint or graph.fingerprint
        if identity in known:
            raise UserError(
                f"{known[identity]} and {graph.name} are the same graph; give each "
                "graph once"
            )
        known[identity] = graph.name
        for with_split in plan.graphs.values():
            refuse_untrainable(with_split)
        for config in plan.configs:
            refuse_other_training(graph, config)
    return complete


def _named_methods(methods: _Methods) -> dict[str, BuildModule | None]:
    """The methods by name, with what builds the user's own; None for built-in ones."""
    entries: list[tuple[str, BuildModule | None]] = []
    if isinstance(methods, Mapping):
        entries += methods.items()
    elif isinstance(methods, str) or callable(methods):
        return _named_methods([methods])
    else:
        for method in methods:
            if isinstance(method, str):
                entries.append((method, None))
            elif callable(method):
                entries.append((callable_name(method), method))
            else:
                raise UserError(
                    f"a method is {method!r}; give a name or a callable (in_channels, "
                    "out_channels) -> Module"
                )
    if not entries:
        raise UserError("there are no methods; name some, like gat and temp_gated")
    chosen: dict[str, BuildModule | None] = {}
    for name, build in entries:
        if build is not None and name in METHODS:
            raise UserError(
                f"{name} is a built-in method; call yours by another name, like "
                f"{{'my_{name}': ...}}"
            )
        if chosen.get(name, build) is not build:
            raise UserError(
                f"two methods are called {name}; give a mapping from names to callables"
            )
        chosen[name] = build
    return chosen
