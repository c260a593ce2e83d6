"""Comparisons of the runs in a store, without the graphs they were made on."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tempergat.base import UserError, counted, listed, suggest_one_of
from tempergat.comparison.chosen import by_recipes, choose, recipe_kind
from tempergat.comparison.options import MOST_RUNS
from tempergat.comparison.plan import (
    FIRST_TUNED_SEED,
    backbone_of,
    baselines_of,
    has_choice,
)
from tempergat.comparison.report.tables import NOTE_ON_RECIPES
from tempergat.comparison.results.comparison import Comparison
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.notes import (
    note_on_residual,
    note_on_splits,
    notes_on_condition,
    stored_split_ratio,
)
from tempergat.comparison.search import setting_word
from tempergat.comparison.storage.rows import Group, RunKey
from tempergat.comparison.storage.several import read_stores
from tempergat.comparison.storage.store import store_file
from tempergat.comparison.tune import notes_on_tuning, searched_settings
from tempergat.training import PARTS, Condition, Run, RunConfig, has_setting

# Settings that recipes give to methods of all backbones alike.
_OF_ALL_METHODS = (
    "epochs",
    "selection",
    "normalize_features",
    "scale_features",
    "metric",
    "class_weights",
)


def stored_comparisons(
    paths: Path | Sequence[Path],
    dataset: str | None = None,
    baseline: str | None = None,
) -> list[Comparison]:
    """The comparison of each graph and each recipe in one store or several.

    The files are only read, and a run that stands in several counts once. Runs of
    searches are left out. Methods whose settings were searched are compared with one
    another, and so are runs with the same noise.

    Args:
        paths: The files of stores, or the folders that hold them.
        dataset: The name of one graph; all graphs when left out.
        baseline: The method all others are compared with; each variant's backbone when
            left out.

    Raises:
        UserError: There is no such store, graph or baseline, a store is damaged, or
            two of them hold different results of one run.
    """
    paths = [paths] if isinstance(paths, Path) else paths
    stored, groups = read_stores(paths)
    runs = [run for run in stored if not MOST_RUNS <= run.seed < FIRST_TUNED_SEED]
    where = listed(list(map(str, paths)), most=len(paths))
    if not runs:
        raise UserError(f"there are no finished runs in {where}; name another store")
    names = sorted({run.dataset for run in runs})
    if dataset is not None and dataset not in names:
        raise UserError(
            f"{where} {'has' if len(paths) == 1 else 'have'} no runs on {dataset!r}; "
            f"{suggest_one_of(dataset, names)}"
        )
    # Several stores have no file in common.
    file = store_file(paths[0]) if len(paths) == 1 else None
    by_name = {
        name: [run for run in runs if run.dataset == name]
        for name in (names if dataset is None else [dataset])
    }
    return [
        _comparison(of_table, shared, _changed(of_name), baseline, file, groups)
        for of_name in by_name.values()
        for of_table, shared in _tables(of_name)
    ]


def _comparison(
    runs: list[Run],
    shared: Sequence[str],
    changed: Sequence[str],
    baseline: str | None,
    file: Path | None,
    groups: Sequence[Group],
) -> Comparison:
    """The comparison of one table's runs; those of `shared` methods are in others."""
    methods = list(dict.fromkeys(run.method for run in runs))
    if baseline is not None and baseline not in methods:
        raise UserError(
            f"there are no runs of {baseline} on {runs[0].dataset}; "
            f"{suggest_one_of(baseline, methods)}"
        )
    config = runs[0].config
    is_tuned = runs[0].seed >= FIRST_TUNED_SEED
    chosen = choose(runs)
    result = dataset_result(
        chosen.compared,
        methods,
        baselines_of(methods, baseline),
        config.get("metric") or "accuracy",
        config.get("selection", "best_val_accuracy"),
        tuned=is_tuned or bool(chosen.others),
        beside_backbones=chosen.beside_backbones,
        all_pairs=baseline is None,
        test_to_train=stored_split_ratio(runs),
    )
    notes = [*notes_on_condition(runs[0].condition)]
    if is_tuned:
        found = {(r.method, r.split): searched_settings(r.config) for r in runs}
        notes += notes_on_tuning(found)
    elif chosen.others:
        notes.append(NOTE_ON_RECIPES)
    else:
        notes += note_on_residual({run.method: run.config for run in runs})
    if result.splits > 1:
        notes += note_on_splits(result, runs, stored=True)
    if shared:
        notes.append(
            f"{listed(shared, most=len(shared))}: the runs are also in an earlier "
            f"table, because {'it has' if len(shared) == 1 else 'they have'} the same "
            "settings in both."
        )
    notes += _notes_on_lost_runs(runs, groups)
    counts = Counter(run.method for run in chosen.compared)
    words = _settings_in_words(runs, changed) + (", tuned" if is_tuned else "")
    return Comparison(
        result=result,
        runs=chosen.compared,
        chosen=chosen.recipes if chosen.others else {},
        other_runs=chosen.others,
        baseline=baseline,
        recipe=f"plain or default, {words}" if chosen.others else words,
        device=runs[0].device,
        complete=len(set(counts.values())) == 1,
        notes=tuple(notes),
        store=file,
    )


def _notes_on_lost_runs(runs: Sequence[Run], groups: Sequence[Group]) -> list[str]:
    """Runs that are gone: a group is stored as a whole, and some of these are not."""
    stored = {RunKey.of(run) for run in runs}
    settings = {run.config_hash for run in runs}
    lost: dict[str, set[int]] = {}
    for group in groups:
        keys = {key for key in group.keys if key.config_hash in settings}
        if keys & stored and keys - stored:
            seeds = {key.seed for key in keys - stored}
            lost.setdefault(group.method, set()).update(seeds)
    return [
        f"{method}: {counted(len(seeds), 'run')} (seed "
        f"{listed([str(seed) for seed in sorted(seeds)], most=5)}) that "
        f"{'was' if len(seeds) == 1 else 'were'} trained with the others "
        f"{'is' if len(seeds) == 1 else 'are'} no longer in the store; the same "
        "comparison trains what is missing."
        for method, seeds in lost.items()
    ]


def _tables(runs: Sequence[Run]) -> Iterator[tuple[list[Run], Sequence[str]]]:
    """The runs of one graph's name, cut into those that one table compares.

    With each, the methods whose runs were trained for another table.

    The store does not say which recipe a run is from. Groups are numbered in the order
    in which they were planned, so the runs of one recipe follow one another.
    """
    ordered = sorted(runs, key=lambda run: (run.group_id or 0, run.seed))
    for origin in dict.fromkeys(map(_made, ordered)):
        made_alike = [run for run in ordered if _made(run) == origin]
        for graph in _graphs(made_alike):
            plain = [run for run in graph if run.seed < FIRST_TUNED_SEED]
            tuned = [run for run in graph if run.seed >= FIRST_TUNED_SEED]
            for taken in _by_turns(plain):
                yield from _of_both_and_others(taken)
            # Of each method and split, those with the settings found last.
            last = {(run.method, run.split): run.config_hash for run in tuned}
            found = [r for r in tuned if last[r.method, r.split] == r.config_hash]
            for taken in _by_turns(found):
                yield taken, ()


def _made(run: Run) -> tuple[str, int, Condition | None]:
    return (run.device, run.numerics, run.condition)


def _graphs(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs on one graph with its splits; other data has another fingerprint."""
    graphs: list[dict[int, str]] = []
    place: dict[str, int] = {}
    for run in runs:
        if run.fingerprint in place:
            continue
        if not graphs or run.split in graphs[-1]:
            graphs.append({})
        graphs[-1][run.split] = run.fingerprint
        place[run.fingerprint] = len(graphs) - 1
    return [
        [run for run in runs if place[run.fingerprint] == number]
        for number in range(len(graphs))
    ]


def _by_turns(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs on one graph, cut into comparisons on one split and on several in turn.

    Of S splits, seed r is trained on number r mod S. Runs that two comparisons share
    are trained once, and stand in both.
    """

    def key(run: Run) -> str:
        return run.config_hash if run.seed < FIRST_TUNED_SEED else run.method

    def fits(run: Run, cut: tuple[int, int]) -> bool:
        turns, first = cut
        return run.split == first + run.seed % MOST_RUNS % turns

    splits = {run.split for run in runs}
    turns = {run.seed % MOST_RUNS - run.split for run in runs} | {n + 1 for n in splits}
    cuts = [*((1, n) for n in splits), *((count, 0) for count in turns if count > 1)]
    support = {cut: sum(fits(run, cut) for run in runs) for cut in cuts}
    # The settings that belong to a cut, and its last seed.
    inside: dict[tuple[int, int], tuple[set[str], int]] = {}
    for name in dict.fromkeys(map(key, runs)):
        of_name = left = [run for run in runs if key(run) == name]
        while left:
            counts = {cut: sum(fits(run, cut) for run in left) for cut in cuts}
            best = max(cuts, key=lambda cut: (counts[cut], support[cut], cut))
            groups = {run.group_id for run in left if fits(run, best)}
            seeds = [r.seed for r in of_name if r.group_id in groups and fits(r, best)]
            names, last = inside.get(best, (set(), 0))
            inside[best] = names | {name}, max(last, *seeds)
            left = [run for run in left if not fits(run, best)]
    return [
        [r for r in runs if key(r) in names and fits(r, cut) and r.seed <= last]
        for cut, (names, last) in sorted(inside.items())
    ]


def _of_both_and_others(
    runs: Sequence[Run],
) -> Iterator[tuple[list[Run], Sequence[str]]]:
    """Tables of methods with runs of `plain` and of `default`, then all others.

    Methods that are trained with `default` alone belong to the first.
    """
    pairs = [of for of in by_recipes(runs) if len(of) == 2]
    plain_of = {
        of["default"][0].config_hash: of["plain"][0].config_hash for of in pairs
    }

    def is_shown(run: Run) -> bool:
        has_one = bool(pairs) and not has_choice(run.method, run.config.get("training"))
        of_recipe = has_one and recipe_kind(run.config) == "default"
        return run.config_hash in plain_of or of_recipe

    for of_table, shared in _recipes(list(filter(is_shown, runs))):
        plain = {plain_of.get(run.config_hash) for run in of_table}
        yield [*of_table, *(r for r in runs if r.config_hash in plain)], shared
    shown = plain_of.keys() | plain_of.values()
    others = [r for r in runs if r.config_hash not in shown and not is_shown(r)]
    yield from _recipes(others)


def _recipes(runs: Sequence[Run]) -> Iterator[tuple[list[Run], Sequence[str]]]:
    """Runs whose settings differ by no more than the method.

    A run is trained once for all recipes that give its method the same settings, so
    the runs of an earlier recipe also stand in the table of a later one that fits. Runs
    of a later recipe cannot belong to an earlier one, which would have trained them.
    """
    recipes: list[dict[str, Mapping[str, Any]]] = []
    place: dict[tuple[str, str], int] = {}
    for run in runs:
        key = (run.method, run.config_hash)
        if key in place:
            continue
        if not recipes or not _fits(run, recipes[-1]):
            recipes.append({})
        recipes[-1][run.method] = run.config
        place[key] = len(recipes) - 1
    first = {(run.method, run.config_hash): run for run in reversed(runs)}
    for number, recipe in enumerate(recipes):
        keys = {key for key, at in place.items() if at == number}
        earlier = [run for key, run in first.items() if place[key] < number]
        shared = _shared(recipe, earlier)
        of_table = [r for r in runs if (r.method, r.config_hash) in keys | shared]
        yield of_table, sorted(method for method, _ in shared)


def _shared(
    recipe: Mapping[str, Mapping[str, Any]], earlier: Sequence[Run]
) -> set[tuple[str, str]]:
    """Method and settings of earlier runs that this recipe has too.

    There must be one choice of settings only.
    """
    fitting: dict[str, set[str]] = {}
    for run in earlier:
        if _fits(run, recipe):
            fitting.setdefault(run.method, set()).add(run.config_hash)
    return {
        (method, next(iter(hashes)))
        for method, hashes in fitting.items()
        if len(hashes) == 1
    }


def _fits(run: Run, table: Mapping[str, Mapping[str, Any]]) -> bool:
    return run.method not in table and all(
        run.config.get(name) == config.get(name)
        for method, config in table.items()
        for name in _in_common((run.method, method), {**run.config, **config})
    )


def _in_common(methods: tuple[str, str], names: Iterable[str]) -> Sequence[str]:
    """The settings, among these names, that two methods of a recipe have in common."""
    if len({backbone_of(method) for method in methods}) > 1:
        return _OF_ALL_METHODS
    return [
        name
        for name in names
        if name != "method"
        if name not in PARTS or all(has_setting(method, name) for method in methods)
    ]


def _changed(runs: Sequence[Run]) -> list[str]:
    """The settings in which runs of one method differ, but for searched ones."""
    seen: dict[str, dict[str, set[str]]] = {name: {} for name in PARTS}
    plain = [run for run in runs if run.seed < FIRST_TUNED_SEED]
    for run in {(run.method, run.config_hash): run for run in plain}.values():
        for name in PARTS:
            seen[name].setdefault(run.method, set()).add(_value(run, name))
    return [name for name in PARTS if any(len(v) > 1 for v in seen[name].values())]


def _value(run: Run, name: str) -> str:
    return setting_word(run.config.get(name, RunConfig.model_fields[name].default))


def _settings_in_words(runs: Sequence[Run], changed: Sequence[str]) -> str:
    """The settings by which recipes differ most often, but for those chosen by run.

    Args:
        runs: The runs of one table.
        changed: Further settings, in which the tables of the graph differ.
    """
    size = ("epochs", "learning_rate", "num_layers", "hidden_channels")
    words = []
    for name in dict.fromkeys((*size, "residual", "norm", *changed)):
        values = {
            _value(run, name)
            for run in runs
            if name in run.config or name in changed
            if name in size or has_setting(run.method, name)
        }
        if len(values) == 1:
            words.append(f"{name} {values.pop()}")
    if (splits := len({run.split for run in runs})) > 1:
        words.append(f"{splits} splits in turn")
    return ", ".join(words)
