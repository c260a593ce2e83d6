"""A layer that builds the messages of all edges, as PyG does, where it must."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.utils import softmax

from tempergat.ops import keep_factor

if TYPE_CHECKING:
    from tempergat.nn.conv._call import Call

# PyG's dictionaries of hooks, and the method that each belongs to.
_HOOKS = {
    f"_{method}_forward_{when}": method
    for method in ("propagate", "message", "aggregate", "edge_update")
    for when in ("pre_hooks", "hooks")
}
_OVERRIDABLE = ("message", "aggregate", "update", "edge_update")
_OURS = ("tempergat.nn", "torch_geometric.nn")


def _methods_of(cls: Any) -> tuple[Any, ...]:
    return cls.message, cls.aggregate, cls.update, cls.edge_update


def _override_of(cls: type) -> str | None:
    """Which method a class overrides that is neither PyG's nor ours, in words."""
    for name in _OVERRIDABLE:
        if not getattr(cls, name).__module__.startswith(_OURS):
            owner = next(c for c in cls.__mro__ if name in c.__dict__)
            return f"{owner.__name__} overrides {name}()"
    return None


class MessageLayer(MessagePassing):  # type: ignore[misc]
    """The part of an attention layer that goes through PyG's ``propagate``.

    A layer has PyG's ``edge_update``, which gives the attention weights, and
    ``message``.
    """

    dropout: float
    # The methods that a class has, and which of them is neither PyG's nor ours.
    _methods: tuple[Any, ...] = ()
    _override: str | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._methods, cls._override = _methods_of(cls), _override_of(cls)

    def slow_path_reason(self) -> str | None:
        """Why the layer must build every message, as PyG does; None if it need not."""
        own = self.__dict__
        if any(map(own.__getitem__, _HOOKS)):
            method = next(method for hooks, method in _HOOKS.items() if own[hooks])
            return f"a {method} hook is registered"
        if self.explain:
            return "an explainer is active"
        if self.aggr not in ("add", "sum"):
            return f"aggr is {self.aggr!r}, not 'add'"
        if self.decomposed_layers != 1:
            return f"decomposed_layers is {self.decomposed_layers}"
        if any(map(own.__contains__, _OVERRIDABLE)):
            name = next(name for name in _OVERRIDABLE if name in own)
            return f"{name}() was replaced on this instance"
        cls = type(self)
        # A method of a class may be replaced at any time.
        is_known = _methods_of(cls) == self._methods
        return self._override if is_known else _override_of(cls)

    @property
    def target_to_source(self) -> bool:
        """Whether messages run from row 1 of ``edge_index`` to row 0."""
        return bool(self.flow == "target_to_source")

    def __prepare_scriptable__(self) -> Any:
        raise TypeError(
            f"{type(self).__name__} cannot be scripted, and torch.jit.script is "
            f"deprecated; use torch.compile or torch.export"
        )

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        """Leaves ``propagate`` and ``edge_updater`` as ``MessagePassing`` has them.

        PyG would write others for TorchScript, which cannot have these layers. To do
        that it reads the source of the class, which takes longer than all else that
        is done to make a layer.
        """

    def pair(self, src: Any, dst: Any) -> tuple[Any, Any]:
        """Values of sources and targets in the order of the rows of ``edge_index``."""
        return (dst, src) if self.target_to_source else (src, dst)

    def attend_by_messages(
        self,
        call: Call,
        gate_logit: Tensor | None,
        skip: Tensor | None,
        dtype: torch.dtype,
        **features: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """As `AttentionLayer.attend`, by messages as PyG builds them.

        Messages have the type ``dtype``. ``features`` are what ``edge_update`` and
        ``message`` take; what sources and targets both have is a pair from `pair`.
        """
        graph, bias = call.graph, call.edge_bias
        if bias is not None and "edge_bias" not in self.inspector.get_param_dict(
            "edge_update"
        ):
            raise ValueError(
                f"edge_bias was given, but edge_update() of {type(self).__name__} does "
                "not take it; give it an argument edge_bias, or leave edge_bias out"
            )
        # They are int64: with int32 edges torch gives wrong gradients of PyG's sums.
        edges = graph.edge_index.long()
        edges = edges.flip(0) if self.target_to_source else edges
        features["size"] = self.pair(graph.num_src, graph.num_dst)
        random = {"edge_id": graph.edge_id, "head_seeds": call.seeds}
        alpha = self.edge_updater(edges, **features, **random, edge_bias=bias)
        if call.edge_weight is not None:
            alpha = alpha * _by_head(call.edge_weight)
        features["alpha"] = alpha = alpha.to(dtype)
        out = self.propagate(edges, **features).flatten(1)
        if gate_logit is not None:
            out = self.gates.output(out, gate_logit, graph)
        return self.join(out, skip), alpha

    def softmax(
        self,
        logit: Tensor,
        edge_bias: Tensor | None,
        edge_id: Tensor,
        seeds: Tensor | None,
        *rows: Any,
    ) -> Tensor:
        """Attention weights of logits that are computed edge by edge, with dropout.

        Args:
            logit: The logits, [E, heads].
            edge_bias: What is added to them; minus infinity gives the weight 0, even
                where a target has no other edge.
            edge_id: The identity of every edge for random numbers.
            seeds: One seed per head for dropout; None for none.
            *rows: PyG's ``index``, ``ptr`` and ``dim_size``.
        """
        if edge_bias is None:
            alpha: Tensor = softmax(logit, *rows)
        else:
            logit = logit + _by_head(edge_bias)
            masked = logit == -torch.inf
            # PyG's softmax would subtract infinity from itself.
            logit = logit.masked_fill(masked, torch.finfo(logit.dtype).min)
            alpha = softmax(logit, *rows).masked_fill(masked, 0.0)
        if seeds is None:
            return alpha
        edge_id = edge_id.unsqueeze(-1)
        return alpha * keep_factor(seeds, edge_id, self.dropout, alpha.dtype)


def _by_head(values: Tensor) -> Tensor:
    return values.unsqueeze(-1) if values.dim() == 1 else values
