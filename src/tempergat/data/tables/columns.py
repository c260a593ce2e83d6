"""Which column of a table is what, by its name or as the user says."""

import re
from dataclasses import dataclass

from tempergat.base import UserError, joined, listed
from tempergat.data.dataset import MASKS
from tempergat.data.tables.table import Table, as_text, find_column
from tempergat.data.user.options import ReadOptions, in_python, option_flag
from tempergat.data.user.reading import NoLabels, Question
from tempergat.data.user.splits import (
    TRUTH,
    column_part,
    is_mask_name,
    is_split_name,
    plain_name,
    split_part,
    unnumbered,
)

# Compared as `plain_name` spells them. The first name of a role is the documented one.
_NAMES = {
    "id": ("id", "nodeid", "node", "idx", "index", "nodeindex", "nodeidx"),
    "label": ("label", "labels", "y", "target", "targets", "class", "classlabel"),
    "split_column": ("split", "subset", "partition", "fold"),
}
_ENDS = (
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("u", "v"),
    ("sourceid", "targetid"),
    ("srcid", "dstid"),
    ("fromid", "toid"),
    ("fromnode", "tonode"),
    ("id1", "id2"),
    ("node1", "node2"),
    ("head", "tail"),
    ("start", "end"),
)
# Names that pandas gives to a column of row numbers.
_ROW_NUMBERS = re.compile(r"|__index_level_0__|Unnamed: \d+")


@dataclass(frozen=True)
class NodeColumns:
    """The columns of a table of nodes, by what they are.

    Attributes:
        id: Names the nodes; None where nodes are numbered.
        label: Holds the classes; None where there are none.
        split: Holds train, val or test; None where there is none.
        masks: Columns of 0 and 1 that are the split, by the name of the mask.
        features: Columns that are features, in order.
        one_hot: Those of them that hold words.
        left_out: Columns that are not used.
    """

    id: str | None
    label: str | None
    split: str | None
    masks: dict[str, str]
    features: tuple[str, ...]
    one_hot: frozenset[str]
    left_out: tuple[str, ...]


def node_columns(table: Table, options: ReadOptions, labelled: bool) -> NodeColumns:
    """Finds out which column of the nodes is what.

    Args:
        table: The first piece of the table.
        options: What the user said about it.
        labelled: Whether there must be labels.

    Raises:
        UserError: A column is missing, or it is not clear what it is.
    """
    given, table = table, table.without(options.drop)
    called = {name: _role_named(table, name) for name in table.columns}
    roles = {
        role: _find_role(table, role, getattr(options, role), called, labelled)
        for role in _NAMES
    }
    one_hot = [
        find_column(table, name, "one_hot")
        for name in options.one_hot
        if name in table.columns or name not in options.edge_features
    ]
    chosen = [find_column(table, name, "features") for name in options.features or ()]
    named = {roles["id"], roles["label"], *one_hot, *chosen}
    parts = _split_parts(table, [name for name in table.columns if name not in named])
    called |= dict.fromkeys(parts, "split_column")
    masks, split = _mask_columns(parts), roles["split_column"]
    if options.split_column is not None:
        is_mask = split is not None and split in masks.values()
        if is_mask and len(masks) == len(MASKS) and _is_binary(table, str(split)):
            roles["split_column"] = None
        else:
            masks = {}
    elif labelled and masks and split is not None:
        raise Question(
            f"{table.path} has the column {split} and mask columns too; choose with "
            f"--split-column {split}, or --split-column {next(iter(masks.values()))} "
            f"where all three masks are there {in_python('split_column')}",
            split_column=split,
        )
    taken = {*masks.values(), *(name for name in roles.values() if name is not None)}
    if options.features is not None:
        features = list(dict.fromkeys([*chosen, *one_hot]))
        used = [name for name in features if name in taken]
        if used:
            role = next(role for role, name in roles.items() if name == used[0])
            raise UserError(
                f"--features names {used[0]}, which is the "
                f"{role.removesuffix('_column')} of {table.path}; leave it out, or "
                "choose another column for that"
            )
    else:
        features = [name for name in table.columns if name not in taken]
        _refuse_row_numbers(table)
        if options.split_column is not None:
            features = [n for n in features if called[n] != "split_column"]
        if labelled and not masks and roles["split_column"] is None:
            _refuse_incomplete_split(table, features, parts)
        _refuse_unclear(table, features, called, roles, masks, parts, labelled)
        if not labelled:
            features = [name for name in features if called[name] is None]
    if labelled and roles["label"] is None:
        raise NoLabels(
            f"{table.path} has no column label, only "
            f"{listed(list(table.columns), 9)}; name the column of the classes with "
            f"--label {in_python('label')}"
        )
    return NodeColumns(
        roles["id"],
        roles["label"],
        roles["split_column"],
        masks,
        tuple(features),
        frozenset(one_hot),
        tuple(name for name in given.columns if name not in {*taken, *features}),
    )


def edge_ends(table: Table, options: ReadOptions) -> tuple[str, str]:
    """The columns of the edges that name the two nodes.

    Raises:
        UserError: There are none, or several pairs.
    """
    if options.source is not None and options.dest is not None:
        return (
            find_column(table, options.source, "source"),
            find_column(table, options.dest, "dest"),
        )
    if options.source is not None or options.dest is not None:
        raise UserError(
            f"only one of --source and --dest names a column of {table.path}; give "
            f"both {in_python('source', 'dest')}"
        )
    plain = {plain_name(name): name for name in table.columns}
    pairs = [pair for pair in _ENDS if plain.keys() >= {*pair}]
    if not pairs:
        names = list(table.columns)
        message = (
            f"{table.path} has no columns source and target, only {listed(names, 9)}; "
            "name the ends of the edges with --source and --dest "
            f"{in_python('source', 'dest')}, or call them so (src and dst, from and "
            "to, u and v are understood too)"
        )
        if len(names) < 2:
            raise UserError(message)
        raise Question(message, source=names[0], dest=names[1])
    if len(pairs) > 1 and pairs[0] != _ENDS[0]:
        names = [plain[name] for pair in pairs for name in pair]
        raise UserError(
            f"{table.path} has the columns {listed(names)}, so it is not clear which "
            f"are the ends of the edges; choose with --source and --dest "
            f"{in_python('source', 'dest')}"
        )
    source, target = pairs[0]
    return plain[source], plain[target]


def _role_named(table: Table, name: str) -> str | None:
    """Whether a column has the name of an id, a label or a split: which of them."""
    plain = plain_name(name)
    if plain == "y" and _has_coordinates(table):
        return None
    return next((role for role, names in _NAMES.items() if plain in names), None)


def _has_coordinates(table: Table) -> bool:
    """Whether the column y may belong to x: both are beside a further column."""
    plain = {plain_name(name) for name in table.columns}
    roles = {name for role in ("id", "split_column") for name in _NAMES[role]}
    return {"x", "y"} <= plain and bool(plain - {"x", "y"} - roles)


def _find_role(
    table: Table,
    role: str,
    given: str | None,
    called: dict[str, str | None],
    labelled: bool,
) -> str | None:
    if given == "" and role != "label":
        return None
    if given is not None:
        known = map(str.lower, table.columns)
        if not labelled and role != "id" and given.lower() not in known:
            return None
        return find_column(table, given, role)
    names = _NAMES[role]
    alike = [name for name, kind in called.items() if kind == role]
    if role == "label" and labelled and not alike and _has_coordinates(table):
        raise UserError(
            f"{table.path} has the columns x and y and others, so y may be the label "
            f"or a coordinate; choose the label with --label {in_python('label')}"
        )
    exact = [name for name in alike if name == names[0]]
    first = [name for name in alike if plain_name(name) == names[0]]
    for choice in (exact, first, alike):
        if len(choice) == 1:
            return choice[0]
    if not alike or (not labelled and role != "id"):
        return None
    word = role.removesuffix("_column")
    raise UserError(
        f"{table.path} has {' and '.join(alike)}, and each may be the {word}; choose "
        f"with {option_flag(role)} {in_python(role)}, and drop what is not a feature"
    )


def _split_parts(table: Table, names: list[str]) -> dict[str, str]:
    """The columns that are called like parts of a split, with the masks they are."""
    called = {
        name: part
        for name in names
        if (part := column_part(name)) is not None
        and (is_mask_name(name) or _is_binary(table, name))
    }
    if len({*called.values()}) < len(MASKS):
        called = {n: p for n, p in called.items() if split_part(unnumbered(n))}
    parts = {*called.values()}
    if MASKS[0] in parts and len(parts) > 1:
        return called
    return {name: part for name, part in called.items() if is_split_name(name)}


def _mask_columns(parts: dict[str, str]) -> dict[str, str]:
    """The columns that are masks. Without `mask` in the names, all three are needed."""
    masks: dict[str, str] = {}
    for name, part in parts.items():
        if not name[-1].isdigit():
            masks.setdefault(part, name)
    if len(masks) == len(MASKS):
        return masks
    return {mask: name for mask, name in masks.items() if is_mask_name(name)}


def _refuse_incomplete_split(
    table: Table, features: list[str], parts: dict[str, str]
) -> None:
    called = {name: parts[name] for name in features if name in parts}
    missing = [mask for mask in MASKS if mask not in called.values()]
    if called and missing:
        words = joined([mask.removesuffix("_mask") for mask in missing])
        raise UserError(
            f"{table.path}: {joined(list(called))} "
            f"{'is' if len(called) == 1 else 'are'} called like a split, which lacks "
            f"{words}; add {joined(missing)} of 0 and 1, or list the features with "
            f"--features to have a split made {in_python('features')}"
        )


def _is_binary(table: Table, name: str) -> bool:
    """Whether a column holds two values as masks do; 1 and 2 are refused later."""
    values = {text.lower() for text in as_text(table.columns[name])} - {""}
    return values <= {"0", "1", "0.0", "1.0", "true", "false", *TRUTH} or values <= {
        "1",
        "2",
    }


def _refuse_row_numbers(table: Table) -> None:
    for number, name in enumerate(table.columns, start=1):
        if _ROW_NUMBERS.fullmatch(name):
            raise Question(
                f"{table.path}: column {number} is called {name!r}, so it may be row "
                "numbers, which are not a feature; give it a name or drop it (in "
                "pandas, save with index=False)",
                drop=(name,),
            )


def _refuse_unclear(
    table: Table,
    features: list[str],
    called: dict[str, str | None],
    roles: dict[str, str | None],
    masks: dict[str, str],
    parts: dict[str, str],
    labelled: bool,
) -> None:
    """Refuses a feature that has the name of a label, an id or a split."""
    for name in features:
        kind = called[name]
        if kind is None or (not labelled and kind != "id"):
            continue
        chosen = roles[kind]
        if kind == "split_column" and masks:
            chosen = ", ".join(masks.values())
        beside = "" if chosen is None else f" although {chosen} is that already"
        word = kind.removesuffix("_column")
        is_part = name in parts and chosen is None
        masked = ", call its parts train_mask, val_mask and test_mask" * is_part
        raise Question(
            f"{table.path}: the column {name} has the name of "
            f"{'an' if word == 'id' else 'a'} {word}{beside}, so it is not taken for "
            f"a feature; drop it, choose with {option_flag(kind)}{masked}, or list the "
            f"features with --features {in_python(kind, 'features')}",
            drop=(name,),
        )
