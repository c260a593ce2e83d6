"""GATv2's attention in Triton; the mathematics is in ops/README.md."""

from tempergat.ops.gpu.gatv2_backward import backward
from tempergat.ops.gpu.gatv2_forward import forward

__all__ = ["backward", "forward"]
