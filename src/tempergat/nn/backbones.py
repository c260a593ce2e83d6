"""The backbones: the plain layers that the methods are built on."""

from typing import Literal, NamedTuple

from torch import nn

from tempergat.nn.conv.gat import TemperGATConv
from tempergat.nn.conv.gatv2 import TemperGATv2Conv
from tempergat.nn.conv.gcn import GCNLayer
from tempergat.nn.conv.linear import LinearLayer

BackboneName = Literal["gcn", "gat", "gatv2", "mlp"]


class Backbone(NamedTuple):
    """What the rest of the library needs to know about a backbone.

    Attributes:
        layer: The class of its layers.
        has_attention: Whether its layers compute attention weights. Only such layers
            have heads, attention dropout and edge features, and take a temperature
            and a gate.
        recipe_block: The block of a recipe that holds its settings.
        takes_edge_weight: Whether its layers use a weight for every edge.
        num_projections: How many linear maps of the node features a layer computes.
    """

    layer: type[nn.Module]
    has_attention: bool
    recipe_block: Literal["attention", "gcn"]
    takes_edge_weight: bool = False
    num_projections: int = 1


BACKBONES: dict[BackboneName, Backbone] = {
    "gcn": Backbone(GCNLayer, False, "gcn", takes_edge_weight=True),
    "gat": Backbone(TemperGATConv, True, "attention"),
    "gatv2": Backbone(TemperGATv2Conv, True, "attention", num_projections=2),
    "mlp": Backbone(LinearLayer, False, "gcn"),
}
