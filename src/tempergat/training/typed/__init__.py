"""Typed graphs as the models for them take them: one graph of a single type."""

from tempergat.training.typed.union import (
    node_types_of,
    typed_inputs,
    union_edges,
    union_graphs,
)

__all__ = ["node_types_of", "typed_inputs", "union_edges", "union_graphs"]
