"""Batches: seeds with some of their neighbours, and many small graphs.

A batch of small graphs comes from `small_graphs/loader.py`: `members.py` takes the
graphs, `graph_set.py` their attributes, `gather.py` collects those of a batch, and
`padding.py` pads them.

A sampled batch goes from seeds (`loader.py`) to hops (`engine.py` chooses who draws
them, `reference.py` is the specification), to the graphs of its layers
(`layer_graphs.py`) and to PyG's fields (`batches.py`). `topology.py` and `features.py`
hold the edges and features of the whole graph.
"""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from .draws import Key as Key
    from .engine import sample as sample
    from .features import NodeFeatures as NodeFeatures
    from .layer_graphs import LayerGraphs as LayerGraphs
    from .loader import NeighborSampler as NeighborSampler
    from .small_graphs.loader import GraphLoader as GraphLoader
    from .topology import Topology as Topology
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
