"""Layers, models and the upgrade of existing ones."""

from tempergat.nn.conv import TemperGATConv, TemperGATv2Conv
from tempergat.nn.gate import gate_penalty
from tempergat.nn.methods import METHODS, Method
from tempergat.nn.models import NodeClassifier, build_model
from tempergat.nn.upgrade import upgrade

__all__ = [
    "METHODS",
    "Method",
    "NodeClassifier",
    "TemperGATConv",
    "TemperGATv2Conv",
    "build_model",
    "gate_penalty",
    "upgrade",
]
