"""Plain values as pydantic models, and pydantic's errors as one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from tempergat.base.errors import UserError
from tempergat.base.text import shown, suggest_one_of

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], values: Mapping[str, Any], what: str) -> Model:
    """Makes a model of plain values.

    Args:
        model: The model.
        values: Its fields.
        what: What the values are, to begin an error message with.

    Raises:
        UserError: A value is missing, unknown or out of its range.
    """
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
    for part in location[:-1]:
        annotation = model.model_fields[part].annotation
        kinds = [k for k in (annotation, *get_args(annotation)) if isinstance(k, type)]
        model = next(kind for kind in kinds if issubclass(kind, BaseModel))
    return list(model.model_fields)
