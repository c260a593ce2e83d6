"""GAT's attention by the C++ kernels; the mathematics is in ops/README.md."""

from torch import Tensor

from tempergat.ops.calls import Backward, Forward
from tempergat.ops.cpu.call import KernelCall
from tempergat.ops.cpu.library import PLACE
from tempergat.ops.reference import EPSILON


def forward(call: Forward) -> tuple[Tensor | None, ...]:
    """What `KernelCall.run_forward` returns, and the nodes' scores."""
    z, att_src, att_dst, z_dst, edge_score, theta, *_ = call.inputs
    (slope,) = call.settings
    edges, dropout = (call.by_target, None), (call.dropout, call.dropout_seed)
    kernel = KernelCall(z, *edges, slope, *dropout, call.copies)
    rows, heads = z.size(0), z.size(1)
    targets = call.copies * (call.by_target[0].size(0) - 1)
    score_src = att_src.new_empty((rows, heads))
    score_dst = att_src.new_empty((targets, heads))
    _add_scores(kernel, att_src, att_dst, z_dst, theta, score_src, score_dst)
    kernel.add_dense(edge_score=edge_score)
    return *kernel.run_forward("gat_forward", call), score_src, score_dst


def backward(call: Backward) -> tuple[Tensor | None, ...]:
    """The gradients of all inputs; None where they are absent."""
    saved = call.saved
    z, att_src, att_dst, z_dst, edge_score, theta, *_ = saved.inputs
    (slope,) = call.settings
    edges = (saved.by_target, saved.by_source)
    dropout = (call.dropout, saved.dropout_seed)
    kernel = KernelCall(z, *edges, slope, *dropout, call.copies)
    _add_scores(kernel, att_src, att_dst, z_dst, theta, *saved.state)
    dlogit, dbias = kernel.add_dout(call)
    kernel.add_dense(edge_score=edge_score, lse=saved.lse, dweights=call.dweights)
    dz, datt_src = kernel.new_features(z), kernel.new_parameter(att_src)
    datt_dst, dtheta = (
        None if x is None else kernel.new_parameter(x) for x in (att_dst, theta)
    )
    kernel.add_features(dz_src=dz)
    kernel.add_dense(datt=datt_src, datt_dst=datt_dst, dtheta=dtheta)
    dz_dst = dedge_score = None
    if z_dst is not None:
        # It stays 0 where the targets have no part in the logits.
        dz_dst = z_dst.new_zeros(z_dst.shape)
        kernel.add_features(dz_dst=dz_dst if att_dst is not None else None)
    if edge_score is not None:
        dedge_score = kernel.new_edges(edge_score)
        kernel.add_dense(dedge_score=dedge_score)
    edge_gradients = kernel.add_edge_gradients(call)
    # Two numbers per head.
    kernel.add_records(2 * z.size(1) * att_src.element_size())
    kernel.run("gat_backward")
    datt_src, datt_dst, dtheta, dbias = kernel.totals(datt_src, datt_dst, dtheta, dbias)
    own = (dz, datt_src, datt_dst, dz_dst, dedge_score, dtheta)
    return *own, *edge_gradients, dlogit, dbias


def _add_scores(
    kernel: KernelCall,
    att_src: Tensor,
    att_dst: Tensor | None,
    z_dst: Tensor | None,
    theta: Tensor | None,
    score_src: Tensor,
    score_dst: Tensor,
) -> None:
    """What the scores are computed from, and the scores."""
    kernel.add_dense(att=att_src, score_src=score_src)
    if att_dst is not None:
        kernel.add_dense(att_dst=att_dst, score_dst=score_dst)
        kernel.add_features(z_dst=z_dst)
    if theta is not None:
        kernel.add_dense(theta=theta)
        place = PLACE["thetas"]
        kernel.values[place : place + 2] = theta.numel(), EPSILON
