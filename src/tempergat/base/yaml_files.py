"""Settings files: YAML without its traps."""

from __future__ import annotations

import re
from collections.abc import Hashable
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from tempergat.base.errors import UserError

# PyYAML takes 1e-3 for text, as YAML 1.1 wants a point in it.
_FLOAT_WITHOUT_POINT = re.compile(r"^[-+]?[0-9]+[eE][-+]?[0-9]+$")


def read_yaml(file: Traversable, what: str) -> Any:
    """What a YAML file holds, as plain values; reading it runs no code.

    Args:
        file: The file.
        what: What it is, with its name, to begin a message with.

    Raises:
        UserError: It cannot be read, is not YAML, or says something twice.
    """
    try:
        # The loader knows plain values alone, like PyYAML's safe one.
        return yaml.load(file.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise UserError(
            f"cannot read {what}: {error.strerror}; give the path of a .yaml file"
        ) from error
    except RecursionError as error:
        raise UserError(
            f"{what} is not YAML of settings (too deeply nested); mend it"
        ) from error
    # A ValueError: numbers and dates that cannot be, and bytes that are no text.
    except (yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{what} is not YAML ({reason}); mend it") from error


class _Loader(yaml.SafeLoader):
    """Reads plain values, and refuses a key that is there twice."""

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value} is there twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", _FLOAT_WITHOUT_POINT, list("-+0123456789")
)
