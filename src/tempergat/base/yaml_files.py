"""Reads YAML settings: 1e-3 is a number, and a repeated key is an error."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Hashable
from importlib.resources.abc import Traversable
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from tempergat.base.errors import UserError
from tempergat.base.files import refuse_pipe
from tempergat.base.text import LONGEST_VALUE, one_line

# YAML 1.1 wants a point in a number, so PyYAML reads 1e-3 as text.
_FLOAT_WITHOUT_POINT = re.compile(r"^[-+]?[0-9]+[eE][-+]?[0-9]+$")
# Values of a file once its aliases are written out. Settings have a few hundred; ten
# aliases to ten aliases, eight times over, would have a hundred million.
_MOST_VALUES = 10_000
_LONGEST_REASON = 200
# Tabs, tags and byte order marks are taken by PyYAML's two parsers in different ways.
_READ_ALIKE = re.compile("[^\t!\ufeff]*")


def read_yaml(file: Traversable, what: str) -> Any:
    """Reads a YAML file as plain values; no code in it is run.

    Args:
        file: The file.
        what: What it is, with its name; error messages begin with it.

    Raises:
        UserError: The file cannot be read, is not YAML, has a key twice, or repeats
            too many values through aliases.
    """
    try:
        refuse_pipe(file)
        return _load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(
            f"cannot read {what}: {error.strerror}; give the path of a .yaml file"
        ) from error
    except RecursionError as error:
        raise UserError(
            f"{what} is not YAML of settings (too deeply nested); fix it"
        ) from error
    # ValueError: an impossible number or date, or bytes that are not UTF-8.
    except (yaml.YAMLError, ValueError) as error:
        reason = one_line(" ".join(str(error).split()), _LONGEST_REASON)
        raise UserError(f"{what} is not YAML ({reason}); fix it") from error


def _load(text: str) -> Any:
    if yaml.__with_libyaml__ and _READ_ALIKE.fullmatch(text):
        # The errors of the fast loader do not show the line.
        with contextlib.suppress(yaml.YAMLError, ValueError):
            return _build(_FastLoader(text))
    return _build(_Loader(text))


def _build(loader: _Loader | _FastLoader) -> Any:
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        # Before the values are built: merge keys copy what their aliases stand for.
        _count_values(root, {})
        return loader.construct_document(root)
    finally:
        loader.dispose()


def _count_values(node: yaml.Node, counts: dict[int, int]) -> int:
    """How many values a node holds with all aliases written out.

    Args:
        node: The node.
        counts: What was counted before, by the id of the node; 0 for a node that is
            being counted.

    Raises:
        ConstructorError: A node holds itself, or there are too many values.
    """
    known = counts.get(id(node))
    if known is not None:
        if known == 0:
            raise _refusal("an alias refers to a value that it is part of", node)
        return known
    counts[id(node)] = 0
    inner: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        inner = node.value
    elif isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    total = 1 + sum(_count_values(part, counts) for part in inner)
    if total > _MOST_VALUES:
        raise _refusal(f"its aliases stand for over {_MOST_VALUES:,} values", node)
    counts[id(node)] = total
    return total


def _refusal(reason: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, reason, node.start_mark)


class _Values(SafeConstructor, Resolver):
    """Builds plain values only, and refuses a repeated key."""

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    name = one_line(key.value, LONGEST_VALUE)
                    raise _refusal(f"{name} occurs twice", key)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Values.add_implicit_resolver(
    "tag:yaml.org,2002:float", _FLOAT_WITHOUT_POINT, list("-+0123456789")
)


class _Loader(_Values, yaml.SafeLoader):
    """Reads a file in Python."""


if yaml.__with_libyaml__:

    class _FastLoader(_Values, Composer, yaml.CSafeLoader):
        """Reads a file in C; nodes are composed in Python, where depth is limited."""

        def __init__(self, text: str) -> None:
            yaml.CSafeLoader.__init__(self, text)
            Composer.__init__(self)
