"""GAT's attention by the C++ kernels; the mathematics is in ops/README.md."""

from torch import Tensor

from tempergat.ops.calls import Backward, Forward
from tempergat.ops.cpu import scores
from tempergat.ops.cpu.call import KernelCall


def forward(call: Forward) -> tuple[Tensor, ...]:
    """Output [T, H, C], log-sum-exp [T, H], weights [E, H] and the nodes' scores."""
    z, att_src, att_dst, z_dst, edge_score, theta = call.inputs
    att_src, att_dst, theta = att_src.contiguous(), _dense(att_dst), _dense(theta)
    score_src = att_src.new_empty(z.shape[:2])
    targets = call.by_target.pointer.size(0) - 1
    if att_dst is not None and z_dst is None:
        score_dst = att_src.new_empty(z.shape[:2])
        scores.forward(z, (att_src, att_dst), theta, (score_src, score_dst))
        score_dst = score_dst[:targets]
    else:
        score_dst = att_src.new_empty(targets, z.size(1))
        scores.forward(z, (att_src,), theta, (score_src,))
        if att_dst is not None:
            scores.forward(z_dst, (att_dst,), theta, (score_dst,))
    (slope,) = call.settings
    kernel = KernelCall(z, slope, call.dropout, call.dropout_seed)
    kernel.add_features(z_src=z)
    kernel.add_dense(score_src=score_src, edge_score=edge_score)
    if att_dst is not None:
        kernel.add_dense(score_dst=score_dst)
    return *kernel.run_forward("gat_forward", call), score_src, score_dst


def backward(call: Backward) -> tuple[Tensor, ...]:
    """The gradients of all inputs; without rows where they are absent."""
    saved = call.saved
    z, att_src, att_dst, z_dst, edge_score, theta = saved.inputs
    att_src, att_dst, theta = att_src.contiguous(), _dense(att_dst), _dense(theta)
    score_src, score_dst = saved.state
    assert saved.by_source is not None
    (slope,) = call.settings
    kernel = KernelCall(z, slope, call.dropout, saved.dropout_seed)
    kernel.add_edges("by_target", saved.by_target)
    kernel.add_edges("by_source", saved.by_source)
    kernel.add_features(z_src=z, dout=call.dout)
    kernel.add_dense(score_src=score_src, edge_score=edge_score)
    kernel.add_dense(lse=saved.lse, dweights=call.dweights)
    heads, channels = att_src.shape
    dz, dscore_src = z.new_empty(z.shape), score_src.new_empty(score_src.shape)
    dscore_dst = score_src.new_empty(score_dst.shape)
    datt_dst = att_src.new_empty(0, channels)
    dz_dst, dedge_score = z.new_empty(0, heads, channels), att_src.new_empty(0, heads)
    kernel.add_features(dz_src=dz)
    kernel.add_dense(dscore_src=dscore_src)
    if att_dst is not None:
        kernel.add_dense(score_dst=score_dst, dscore_dst=dscore_dst)
    if edge_score is not None:
        # A padded edge has gradient 0.
        dedge_score = score_src.new_zeros(edge_score.shape)
        kernel.add_dense(dedge_score=dedge_score)
    # Two numbers per head.
    kernel.add_records(saved.by_target, 2 * heads * score_src.element_size())
    kernel.run("gat_backward")
    if att_dst is not None and z_dst is None:
        vectors, dscores = (att_src, att_dst), (dscore_src, dscore_dst)
        (datt_src, datt_dst), dtheta = scores.backward(z, vectors, theta, dscores, dz)
    else:
        (datt_src,), dtheta = scores.backward(z, (att_src,), theta, (dscore_src,), dz)
    if att_dst is not None and z_dst is not None:
        dz_dst = z_dst.new_zeros(z_dst.shape)
        (datt_dst,), more = scores.backward(
            z_dst, (att_dst,), theta, (dscore_dst,), dz_dst
        )
        if dtheta is not None and more is not None:
            dtheta += more
    if dtheta is None:
        dtheta = att_src.new_empty(0)
    return dz, datt_src, datt_dst, dz_dst, dedge_score, dtheta


def _dense(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.contiguous()
