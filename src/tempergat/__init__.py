"""Graph attention with a learnable softmax temperature and feature gates."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

__version__ = "0.2.0"

# Names are imported on first use: the command answers --help, and chooses how threads
# wait, before torch is loaded.
if TYPE_CHECKING:
    from .base import UserError as UserError
    from .comparison import Comparison as Comparison
    from .comparison import Comparisons as Comparisons
    from .comparison import compare as compare
    from .comparison import draw_node as draw_node
    from .data import ReadOptions as ReadOptions
    from .data import load as load
    from .nn import TemperGATConv as TemperGATConv
    from .nn import TemperGATv2Conv as TemperGATv2Conv
    from .nn import TemperTransformerConv as TemperTransformerConv
    from .nn import attention as attention
    from .nn import gate_penalty as gate_penalty
    from .nn import upgrade as upgrade
    from .ops import Graph as Graph
    from .sampling import GraphLoader as GraphLoader
    from .sampling import NeighborSampler as NeighborSampler
    from .training import TrainedModel as TrainedModel
    from .training import load_model as load_model
    from .training import predict as predict
    from .training import train as train
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
    __all__ += ["__version__"]
