"""Attention layers with temperature and gate, the methods built on them, `upgrade`."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from tempergat.nn.adjacency import forget_graphs
    from tempergat.nn.backbones import BACKBONES, Backbone, BackboneName
    from tempergat.nn.conv import AttentionLayer, TemperGATConv, TemperGATv2Conv
    from tempergat.nn.conv.gcn import batch_degree
    from tempergat.nn.convert.dgl import from_dgl
    from tempergat.nn.convert.upgrading import upgrade
    from tempergat.nn.gate import FeatureGate
    from tempergat.nn.inspection.coefficients import (
        LayerAttention,
        attention,
        run_with_attention,
    )
    from tempergat.nn.inspection.graph_calls import (
        GraphCall,
        caller_edge_ids,
        caller_edges,
        edge_order,
    )
    from tempergat.nn.inspection.layer_values import LayerValues, model_values
    from tempergat.nn.methods import METHODS, Method, description_of, find_method
    from tempergat.nn.models import NodeClassifier, build_model
    from tempergat.nn.penalty import gate_penalty
    from tempergat.nn.projection import Features
    from tempergat.nn.sides import Sides
    from tempergat.nn.temperature import Temperature, temperature_of
    from tempergat.nn.typed import (
        EmbeddingTable,
        NodeType,
        TypedFeatures,
        TypedNodeClassifier,
        build_typed_model,
    )

__all__ = [
    "BACKBONES",
    "METHODS",
    "AttentionLayer",
    "Backbone",
    "BackboneName",
    "EmbeddingTable",
    "FeatureGate",
    "Features",
    "GraphCall",
    "LayerAttention",
    "LayerValues",
    "Method",
    "NodeClassifier",
    "NodeType",
    "Sides",
    "TemperGATConv",
    "TemperGATv2Conv",
    "Temperature",
    "TypedFeatures",
    "TypedNodeClassifier",
    "attention",
    "batch_degree",
    "build_model",
    "build_typed_model",
    "caller_edge_ids",
    "caller_edges",
    "description_of",
    "edge_order",
    "find_method",
    "forget_graphs",
    "from_dgl",
    "gate_penalty",
    "model_values",
    "run_with_attention",
    "temperature_of",
    "upgrade",
]

__getattr__, __dir__ = lazy_names(__name__)
