"""Many sets of features on one graph: the CPU's kernels run once for each."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tempergat.ops.calls import Backward, Forward, Input, Saved

Results = tuple[Tensor | None, ...]


def each_copy(
    name: str,
) -> Callable[[Callable[[Any], Results]], Callable[[Any], Results]]:
    """Makes a pass of an attention over one copy of a graph one over all copies."""

    def decorate(run: Callable[[Any], Results]) -> Callable[[Any], Results]:
        @functools.wraps(run)
        def run_all(call: Any) -> Results:
            if call.copies == 1:
                return run(call)
            # The register imports the backends.
            attention = importlib.import_module("tempergat.ops.attention")
            inputs = attention.registered(name).inputs
            if isinstance(call, Forward):
                return _forward(run, call, inputs)
            return _backward(run, call, inputs)

        return run_all

    return decorate


def _forward(
    run: Callable[[Any], Results], call: Forward, specs: Sequence[Input]
) -> Results:
    results = []
    for copy in range(call.copies):
        inputs = _of_copy(call.inputs, specs, call, copy)
        seed = _seed(call.dropout_seed, copy)
        results.append(run(call._replace(inputs=inputs, dropout_seed=seed, copies=1)))
    # Output, log-sum-exp, weights and what backward needs: all have nodes or edges.
    return tuple(_joined(parts) for parts in zip(*results, strict=True))


def _backward(
    run: Callable[[Any], Results], call: Backward, specs: Sequence[Input]
) -> Results:
    saved, results = call.saved, []
    for copy in range(call.copies):
        part = functools.partial(_part, copies=call.copies, copy=copy)
        of_copy = Saved(
            _of_copy(saved.inputs, specs, saved, copy, call.copies),
            _seed(saved.dropout_seed, copy),
            part(saved.out),
            part(saved.lse),
            tuple(map(part, saved.state)),
            saved.by_target,
            saved.by_source,
        )
        dweights = None if call.dweights is None else part(call.dweights)
        results.append(
            run(
                call._replace(
                    dout=part(call.dout), dweights=dweights, saved=of_copy, copies=1
                )
            )
        )
    # The gradient of an input without nodes or edges is the sum over the copies.
    return tuple(
        _joined(parts) if spec.shape[0] in "STE" else _total(parts)
        for parts, spec in zip(zip(*results, strict=True), specs, strict=True)
    )


def _of_copy(
    inputs: tuple[Any, ...],
    specs: Sequence[Input],
    rows: Any,
    copy: int,
    copies: int | None = None,
) -> tuple[Any, ...]:
    """The inputs of one copy; those of edges may be the same for all."""
    copies = rows.copies if copies is None else copies
    edges = rows.by_target.other.size(0)
    return tuple(
        x
        if x is None
        or spec.shape[0] not in "STE"
        or (spec.shape[0] == "E" and x.size(0) == edges)
        else _part(x, copies, copy)
        for x, spec in zip(inputs, specs, strict=True)
    )


def _part(x: Tensor, copies: int, copy: int) -> Tensor:
    size = x.size(0) // copies
    return x.narrow(0, copy * size, size)


def _seed(seed: Tensor | None, copy: int) -> Tensor | None:
    """The seeds of a copy: its number changes their upper halves."""
    return None if seed is None else seed ^ (copy << 32)


def _joined(parts: Sequence[Tensor | None]) -> Tensor | None:
    given = [x for x in parts if x is not None]
    return torch.cat(given) if given else None


def _total(parts: Sequence[Tensor | None]) -> Tensor | None:
    given = [x for x in parts if x is not None]
    return torch.stack(given).sum(0) if given else None
