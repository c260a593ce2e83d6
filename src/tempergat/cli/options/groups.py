"""Options that several commands share as a group."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any


def with_option_group(
    command: Callable[..., None], argument: str, group: Callable[..., Any]
) -> Callable[..., None]:
    """Adds a group of options to a command.

    Args:
        command: The command.
        argument: Its argument that receives the group.
        group: A dataclass with one field, annotated for Typer, for each option.
    """
    signature = inspect.signature(command, eval_str=True)
    options = inspect.signature(group, eval_str=True).parameters

    @wraps(command)
    def wrapped(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in options}
        command(**arguments, **{argument: group(**given)})

    parameters = []
    for parameter in signature.parameters.values():
        added = options.values() if parameter.name == argument else (parameter,)
        parameters += [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in added
        ]
    # Typer reads the signature and the annotations.
    wrapped.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters
    )
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapped
