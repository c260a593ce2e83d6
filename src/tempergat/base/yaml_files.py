"""Reads YAML settings: 1e-3 is a number, and a repeated key is an error."""

from __future__ import annotations

import re
from collections.abc import Hashable
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from tempergat.base.errors import UserError

# YAML 1.1 wants a point in a number, so PyYAML reads 1e-3 as text.
_FLOAT_WITHOUT_POINT = re.compile(r"^[-+]?[0-9]+[eE][-+]?[0-9]+$")


def read_yaml(file: Traversable, what: str) -> Any:
    """Reads a YAML file as plain values; no code in it is run.

    Args:
        file: The file.
        what: What it is, with its name; error messages begin with it.

    Raises:
        UserError: The file cannot be read, is not YAML, or has a key twice.
    """
    try:
        # _Loader builds plain values only, as yaml.SafeLoader does.
        return yaml.load(file.read_text(encoding="utf-8"), _Loader)
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
        reason = " ".join(str(error).split())
        raise UserError(f"{what} is not YAML ({reason}); fix it") from error


class _Loader(yaml.SafeLoader):
    """Builds plain values only, and refuses a repeated key."""

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value} occurs twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", _FLOAT_WITHOUT_POINT, list("-+0123456789")
)
