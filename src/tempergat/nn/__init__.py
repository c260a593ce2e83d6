"""Layers, models and the upgrade of existing ones."""

from tempergat.nn.backbones import BACKBONES, Backbone, BackboneName
from tempergat.nn.conv import TemperGATConv, TemperGATv2Conv
from tempergat.nn.gate import gate_penalty
from tempergat.nn.methods import METHODS, Method
from tempergat.nn.models import NodeClassifier, build_model
from tempergat.nn.upgrade import upgrade

__all__ = [
    "BACKBONES",
    "METHODS",
    "Backbone",
    "BackboneName",
    "Method",
    "NodeClassifier",
    "TemperGATConv",
    "TemperGATv2Conv",
    "build_model",
    "gate_penalty",
    "upgrade",
]
