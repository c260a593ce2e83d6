"""Attention layers with temperature and gate, the methods built on them, `upgrade`."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from tempergat.nn.adjacency import forget_graphs
    from tempergat.nn.backbones import BACKBONES, Backbone, BackboneName
    from tempergat.nn.conv import AttentionLayer, TemperGATConv, TemperGATv2Conv
    from tempergat.nn.conv.gcn import batch_degree
    from tempergat.nn.gate import FeatureGate
    from tempergat.nn.methods import METHODS, Method, find_method
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
    from tempergat.nn.upgrading import upgrade

__all__ = [
    "BACKBONES",
    "METHODS",
    "AttentionLayer",
    "Backbone",
    "BackboneName",
    "EmbeddingTable",
    "FeatureGate",
    "Features",
    "Method",
    "NodeClassifier",
    "NodeType",
    "Sides",
    "TemperGATConv",
    "TemperGATv2Conv",
    "Temperature",
    "TypedFeatures",
    "TypedNodeClassifier",
    "batch_degree",
    "build_model",
    "build_typed_model",
    "find_method",
    "forget_graphs",
    "gate_penalty",
    "temperature_of",
    "upgrade",
]

__getattr__, __dir__ = lazy_names(__name__)
