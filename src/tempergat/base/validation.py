"""Errors of pydantic models as one line.

pydantic is imported where it is used: the command answers --help without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

from tempergat.base.errors import UserError
from tempergat.base.shown_text import shown
from tempergat.base.suggest import suggest_one_of

Model = TypeVar("Model", bound="BaseModel")


def validated(model: type[Model], values: Mapping[str, Any], what: str) -> Model:
    """Makes a model of plain values.

    Args:
        model: The model.
        values: Its fields.
        what: What the values are, to begin an error message with.

    Raises:
        UserError: A value is missing, unknown or out of its range.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise UserError(f"{what}: {first_validation_error(error, model)}") from error


def first_validation_error(error: ValidationError, model: type[BaseModel]) -> str:
    """Location, reason and value of the first validation error."""
    first = error.errors()[0]
    location = [str(part) for part in first["loc"]]
    seen = "" if isinstance(first["input"], dict) else f" (got {shown(first['input'])})"
    reason = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        known = _fields_beside(model, location)
        reason = f"no such setting; {suggest_one_of(location[-1], known)}"
    return ": ".join(part for part in (".".join(location), f"{reason}{seen}") if part)


def _fields_beside(model: type[BaseModel], location: list[str]) -> list[str]:
    """The fields of the model that holds a location."""
    from pydantic import BaseModel

    for part in location[:-1]:
        annotation = model.model_fields[part].annotation
        kinds = (annotation, *get_args(annotation))
        model = next(
            kind
            for kind in kinds
            if isinstance(kind, type) and issubclass(kind, BaseModel)
        )
    return list(model.model_fields)
