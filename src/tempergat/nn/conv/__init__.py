"""The layers: attention with temperature and gate, graph convolution, linear."""

from tempergat.nn.conv._base import AttentionLayer
from tempergat.nn.conv.gat import TemperGATConv
from tempergat.nn.conv.gatv2 import TemperGATv2Conv
from tempergat.nn.conv.gcn import GCNLayer
from tempergat.nn.conv.linear import LinearLayer

__all__ = [
    "AttentionLayer",
    "GCNLayer",
    "LinearLayer",
    "TemperGATConv",
    "TemperGATv2Conv",
]
