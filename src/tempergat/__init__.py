"""Graph attention with a learnable softmax temperature and feature gates."""

from tempergat.ops.graph import Graph

__all__ = ["Graph"]
__version__ = "0.1.0"
