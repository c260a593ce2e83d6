"""Neighbour sampling: batches of seeds with some of their neighbours.

`engines/hops.py` says what a batch is, `engines/reference.py` is its specification in
plain torch, `storage/` holds the edges and features of the whole graph.
"""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from .engines import reference as reference
    from .engines.draws import Key as Key
    from .engines.engine import sample as sample
    from .engines.engine import sample_typed as sample_typed
    from .engines.hops import EdgeType as EdgeType
    from .engines.hops import SampledHops as SampledHops
    from .engines.hops import TypedHops as TypedHops
    from .layer_graphs import LayerGraphs as LayerGraphs
    from .loader import NeighborSampler as NeighborSampler
    from .storage.array_files import as_tensor as as_tensor
    from .storage.array_files import open_array as open_array
    from .storage.features import NodeFeatures as NodeFeatures
    from .storage.topology import Topology as Topology
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
