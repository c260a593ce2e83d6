"""GAT's attention by the C++ kernels; the mathematics is in ops/README.md."""

from torch import Tensor

from tempergat.ops.calls import Backward, Forward
from tempergat.ops.cpu.call import KernelCall


def forward(call: Forward) -> tuple[Tensor, Tensor, Tensor]:
    """Output [T, H, C], log-sum-exp [T, H] and weights [E, H] (or no rows of them)."""
    z, score_src, score_dst, edge_score = call.inputs
    (slope,) = call.settings
    kernel = KernelCall(z, slope, call.dropout, call.dropout_seed)
    kernel.add_features(z_src=z)
    kernel.add_dense(score_src=score_src, score_dst=score_dst, edge_score=edge_score)
    return kernel.run_forward("gat_forward", call)


def backward(call: Backward) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of z, score_src, score_dst and edge_score (no rows: absent)."""
    saved = call.saved
    z, score_src, score_dst, edge_score = saved.inputs
    assert saved.by_source is not None
    (slope,) = call.settings
    kernel = KernelCall(z, slope, call.dropout, saved.dropout_seed)
    kernel.add_edges("by_target", saved.by_target)
    kernel.add_edges("by_source", saved.by_source)
    kernel.add_features(z_src=z, dout=call.dout)
    kernel.add_dense(score_src=score_src, score_dst=score_dst, edge_score=edge_score)
    kernel.add_dense(lse=saved.lse, dweights=call.dweights)
    heads = z.size(1)
    dz, dscore_src = z.new_empty(z.shape), score_src.new_empty(score_src.shape)
    dscore_dst = dedge_score = score_src.new_empty(0, heads)
    kernel.add_features(dz_src=dz)
    kernel.add_dense(dscore_src=dscore_src)
    if score_dst is not None:
        dscore_dst = score_src.new_empty(score_dst.shape)
        kernel.add_dense(dscore_dst=dscore_dst)
    if edge_score is not None:
        # A padded edge has gradient 0.
        dedge_score = score_src.new_zeros(edge_score.shape)
        kernel.add_dense(dedge_score=dedge_score)
    # Two numbers per head.
    kernel.add_records(saved.by_target, 2 * heads * score_src.element_size())
    kernel.run("gat_backward")
    return dz, dscore_src, dscore_dst, dedge_score
