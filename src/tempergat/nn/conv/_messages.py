"""A layer that builds the messages of all edges, as PyG does, where it must."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.utils import softmax

from tempergat.nn.projection import Sides
from tempergat.ops import Graph, keep_factor, repeat_edges

if TYPE_CHECKING:
    from tempergat.nn.conv._call import Call

# PyG's dictionaries of hooks, and the method that each belongs to.
_HOOKS = {
    f"_{method}_forward_{when}": method
    for method in ("propagate", "message", "aggregate", "edge_update")
    for when in ("pre_hooks", "hooks")
}
_OVERRIDABLE_METHODS = ("message", "aggregate", "update", "edge_update")
_OURS = ("tempergat.nn", "torch_geometric.nn")


class MessageLayer(MessagePassing):  # type: ignore[misc]
    """The part of an attention layer that goes through PyG's ``propagate``.

    A layer has PyG's ``edge_update``, which gives the attention weights, and
    ``message``; `_messages_of` says what they are called with.
    """

    dropout: float

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
        for name in _OVERRIDABLE_METHODS:
            if name in own:
                return f"{name}() was replaced on this instance"
            if not getattr(type(self), name).__module__.startswith(_OURS):
                owner = next(c for c in type(self).__mro__ if name in c.__dict__)
                return f"{owner.__name__} overrides {name}()"
        return None

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

    def _messages_of(
        self, graph: Graph, z: Sides[Any], edge_attr: Tensor | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments of ``edge_update`` and of ``message`` that the layer knows.

        Args:
            graph: The graph.
            z: The projected features, [num_nodes, heads, channels].
            edge_attr: The features of the graph's edges.
        """
        raise NotImplementedError

    def _pair(self, values: Sides[Any]) -> tuple[Any, Any]:
        """Values of sources and targets in the order of the rows of ``edge_index``."""
        if self.target_to_source:
            return values.dst, values.src
        return values.src, values.dst

    def attend_by_messages(
        self,
        call: Call,
        z: Sides[Any],
        gate_logit: Tensor | None,
        skip: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """As `attend`, by messages as PyG builds them.

        Raises:
            ValueError: A subclass would ignore the bias of edges.
        """
        graph = call.graph
        of_edges = (call.edge_attr, call.edge_weight, call.edge_bias)
        attr, weight, bias = (repeat_edges(values, graph) for values in of_edges)
        taken = self.inspector.get_param_dict("edge_update")
        if bias is not None and "edge_bias" not in taken:
            raise ValueError(
                f"edge_bias was given, but edge_update() of {type(self).__name__} does "
                "not take it; give it an argument edge_bias, or leave edge_bias out"
            )
        # They are int64: with int32 edges torch gives wrong gradients of PyG's sums.
        edges = graph.edge_index.long()
        edges = edges.flip(0) if self.target_to_source else edges
        size = self._pair(Sides(graph.num_src, graph.num_dst))
        of_logits, of_messages = self._messages_of(graph, z, attr)
        of_logits |= {"edge_bias": bias, "head_seeds": call.seeds}
        of_logits |= {"edge_id": graph.edge_id, "size": size}
        alpha = self.edge_updater(edges, **of_logits)
        if weight is not None:
            alpha = alpha * _by_head(weight)
        value = z.src[1] if isinstance(z.src, tuple) else z.src
        alpha = alpha.to(value.dtype)
        out = self.propagate(edges, alpha=alpha, size=size, **of_messages).flatten(1)
        if gate_logit is not None:
            out = call.gates.output(out, gate_logit, graph, call.mode)
        return self.join(out, skip), alpha

    def join(self, out: Tensor, skip: Tensor | None) -> Tensor:
        """Joins the heads, then adds skip and bias."""
        raise NotImplementedError

    def _softmax(
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
