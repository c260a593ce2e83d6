"""PyG's layers under PyG's names: the attention layers without temperature and gate."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch_geometric.nn as pyg

from tempergat.nn.conv.gat import TemperGATConv
from tempergat.nn.conv.gatv2 import TemperGATv2Conv
from tempergat.nn.conv.transformer import TemperTransformerConv

_NEW = {"temperature", "init_temp", "gate", "gate_bias_init", "qk_norm"}


def _made_like(theirs: type, ours: type) -> Callable[..., None]:
    """A constructor with the arguments of PyG's layer."""

    @functools.wraps(theirs.__init__)  # type: ignore[misc]
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        if new := _NEW & options.keys():
            name = theirs.__name__
            raise TypeError(f"{name} takes no {min(new)}; use {ours.__name__}")
        ours.__init__(self, *args, temperature=None, gate=None, **options)  # type: ignore[misc]

    return __init__


class GATConv(TemperGATConv):
    """PyG's ``GATConv``, computed without a feature vector per edge.

    Its arguments, ``repr``, ``state_dict`` and, at dropout 0, its numbers are PyG's. It
    can be called as :class:`TemperGATConv`, and has its ``cache``, too.
    """

    # As in PyG, a layer without ``edge_dim`` ignores edge features.
    ignores_edge_attr = True
    __init__ = _made_like(pyg.GATConv, TemperGATConv)
    __repr__ = pyg.GATConv.__repr__


class GATv2Conv(TemperGATv2Conv):
    """PyG's ``GATv2Conv``, computed like :class:`GATConv`."""

    __init__ = _made_like(pyg.GATv2Conv, TemperGATv2Conv)
    __repr__ = pyg.GATv2Conv.__repr__


class TransformerConv(TemperTransformerConv):
    """PyG's ``TransformerConv``, computed like :class:`GATConv`."""

    __init__ = _made_like(pyg.TransformerConv, TemperTransformerConv)
    __repr__ = pyg.TransformerConv.__repr__
