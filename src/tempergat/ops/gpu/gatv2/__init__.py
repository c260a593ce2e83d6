"""GATv2's attention in Triton; the mathematics is in ops/README.md."""

from tempergat.ops.gpu.gatv2.backward_pass import backward as backward
from tempergat.ops.gpu.gatv2.backward_pass import statistics_of as statistics_of
from tempergat.ops.gpu.gatv2.forward_pass import forward as forward
