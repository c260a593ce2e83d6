"""Attention layers with temperature and gate, the methods built on them, `upgrade`."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from .adjacency import forget_graphs as forget_graphs
    from .batches import BatchNorm as BatchNorm
    from .build import build_model as build_model
    from .conv._base import AttentionLayer as AttentionLayer
    from .conv.gat import TemperGATConv as TemperGATConv
    from .conv.gatv2 import TemperGATv2Conv as TemperGATv2Conv
    from .conv.gcn import batch_degree as batch_degree
    from .conv.plain import GATConv as GATConv
    from .conv.plain import GATv2Conv as GATv2Conv
    from .conv.plain import TransformerConv as TransformerConv
    from .conv.transformer import TemperTransformerConv as TemperTransformerConv
    from .gate import FeatureGate as FeatureGate
    from .gate import GateLinear as GateLinear
    from .gate import gate_penalty as gate_penalty
    from .inspection.calls import GraphCall as GraphCall
    from .inspection.coefficients import LayerAttention as LayerAttention
    from .inspection.coefficients import LayerValues as LayerValues
    from .inspection.coefficients import attention as attention
    from .inspection.coefficients import model_values as model_values
    from .inspection.coefficients import run_with_attention as run_with_attention
    from .methods import METHODS as METHODS
    from .methods import Method as Method
    from .methods import description_of as description_of
    from .methods import find_method as find_method
    from .models import BACKBONES as BACKBONES
    from .models import BackboneName as BackboneName
    from .models import NodeClassifier as NodeClassifier
    from .models import hidden_features as hidden_features
    from .projection import Features as Features
    from .temperature import make_theta as make_theta
    from .temperature import temperature_of as temperature_of
    from .typed import NodeType as NodeType
    from .typed import TypedFeatures as TypedFeatures
    from .typed import TypedNodeClassifier as TypedNodeClassifier
    from .typed import build_typed_model as build_typed_model
    from .upgrading import upgrade as upgrade
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
