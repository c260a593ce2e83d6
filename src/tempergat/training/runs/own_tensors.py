"""Calls of a user's module with tensors of its own, because it may work in place."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from tempergat.base import UserError, listed
from tempergat.ops import version_of
from tempergat.training.runs.user_modules import call_user_module, taken_edge_inputs

# Copies of so many bytes are said.
_LARGE = 2**30


class OwnTensors:
    """Copies of the tensors that the modules of a method are called with.

    A tensor that is given again has the same copy, for which layers have prepared the
    edges, until a call changes it.

    Args:
        method: The method's name.
    """

    def __init__(self, method: str) -> None:
        self._method = method
        # By given tensor: its name, its copy and what `version_of` said of the copy.
        self._copies: Any = WeakTensorKeyDictionary()
        self._said: set[str] = set()

    def call(
        self,
        module: Any,
        x: Tensor,
        edge_index: Tensor,
        edge_inputs: Mapping[str, Tensor],
        num_classes: int,
        *,
        x_is_fresh: bool = False,
    ) -> Tensor:
        """The class scores of a module; a line says what it writes to.

        Args:
            x_is_fresh: Whether the features were made for this call and need no copy.

        Raises:
            UserError: They are not one row per node with a number for each class.
        """
        given = {"edge_index": edge_index, **taken_edge_inputs(module, edge_inputs)}
        given |= {} if x_is_fresh else {"x": x}
        size = sum(tensor.nbytes for tensor in given.values())
        if size > _LARGE:
            self._say(
                f"the module of {self._method} is called with copies of "
                f"{listed(sorted(given))}, because it may work in place; they take "
                f"{size / 2**30:.1f} GiB"
            )
        own = {name: self._copy_of(name, tensor) for name, tensor in given.items()}
        own = {"x": x, **own}
        before = {name: version_of(tensor) for name, tensor in own.items()}
        edges = {name: own[name] for name in edge_inputs if name in own}
        inputs = (own["x"], own["edge_index"], edges, num_classes)
        logits = call_user_module(self._method, module, *inputs)
        changed = [name for name in own if version_of(own[name]) != before[name]]
        if changed:
            self._say(
                f"the module of {self._method} works in place on "
                f"{listed(sorted(changed))}: it gets a new copy for each call, so that "
                "nothing else is changed and its next call sees what you gave; without "
                "inplace=True, mul_ and the like one copy is enough"
            )
        return logits

    def refuse_hidden_changes(self) -> None:
        """Refuses a module that has changed what its next call gets.

        Raises:
            UserError: A copy differs, and neither torch nor a checksum has noticed.
        """
        for given, (name, copy, version) in self._copies.items():
            if version_of(copy) == version and not torch.equal(given, copy):
                raise UserError(
                    f"the module of {self._method} writes into {name} where torch does "
                    "not see it (.data or a NumPy view), so its later epochs had other "
                    f"values; have it take {name}.clone() first"
                )

    def _copy_of(self, name: str, given: Tensor) -> Tensor:
        copy: Tensor
        _, copy, version = self._copies.get(given, (name, given, None))
        if copy.requires_grad or version_of(copy) != version:
            copy = given.detach().clone()
            self._copies[given] = name, copy, version_of(copy)
        return copy

    def _say(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            warnings.warn(line, UserWarning, stacklevel=2)
