"""Chooses the engine that samples a batch; all of them give that of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from tempergat.ops import CpuSampler, Relation, can_sample_on_cpu, gpu_sampling
from tempergat.sampling import reference
from tempergat.sampling.draws import Key
from tempergat.sampling.reference import SampledHops

# So many batches of a size are sampled on a GPU before a CUDA graph is captured.
_PLAIN_CALLS = 3
# By the pointers of a graph's first relation, for as long as they live: memory of the
# C++ engine that no call is using (a thread takes some out and puts it back), and
# samplers captured on a GPU.
_idle: Any = WeakTensorKeyDictionary()
_captures: Any = WeakTensorKeyDictionary()


def sample(
    relations: Sequence[Relation],
    num_nodes: Sequence[int],
    seed_type: int,
    seeds: Tensor,
    fanout: Sequence[Sequence[int]],
    key: Key,
    replace: bool,
) -> SampledHops:
    """Samples the neighbourhood of some seeds, with `reference.sample`'s arguments."""
    graph = (relations, num_nodes, seed_type, seeds, fanout)
    kernels = gpu_sampling(relations[0].pointer.device)
    if kernels is not None:
        return sample_on_gpu(kernels, *graph, key, replace)
    on_cpu = seeds.is_cpu and all(relation.pointer.is_cpu for relation in relations)
    if not (on_cpu and can_sample_on_cpu()):
        return reference.sample(*graph, key, replace)
    idle = _idle.setdefault(relations[0].pointer, [])
    try:
        memory = idle.pop()
    except IndexError:
        memory = CpuSampler(num_nodes)
    if memory.num_nodes != list(num_nodes):
        memory = CpuSampler(num_nodes)
    drawn = memory.sample(relations, seed_type, seeds, fanout, key.of_step(), replace)
    # After a failure the memory is not used again.
    idle.append(memory)
    return SampledHops(*drawn)


def sample_on_gpu(
    kernels: Any,
    relations: Sequence[Relation],
    num_nodes: Sequence[int],
    seed_type: int,
    seeds: Tensor,
    fanout: Sequence[Sequence[int]],
    key: Key,
    replace: bool,
) -> SampledHops:
    """Samples by a module of GPU kernels, with `reference.sample`'s arguments.

    The relations are on the device, the seeds on any.
    """
    device = relations[0].pointer.device
    seeds = seeds.to(device)
    has_one_type = len(relations) == len(num_nodes) == 1
    captured = None
    if has_one_type and device.type == "cuda":
        facts = (relations[0], num_nodes[0], seeds.size(0), fanout[0], replace)
        captured = _captured_sampler(kernels, *facts)
    if captured is not None:
        sampled, nodes, edges = captured.sample(seeds, key.of_step())
    else:
        number = torch.full((1,), key.of_step(), dtype=torch.int64, device=device)
        graph = (relations, num_nodes, seed_type, seeds, fanout)
        sampled = kernels.sample(*graph, number, replace)
        nodes, edges = sampled.read(len(fanout[0]))
    return SampledHops(
        _in_use(sampled.n_id, nodes),
        _in_use(sampled.source, edges),
        _in_use(sampled.target, edges),
        _in_use(sampled.slot, edges),
        sampled.pointer[0][: nodes[0][-2] + 1] if has_one_type else None,
        [_differences(counts) for counts in nodes],
        [_differences(counts) for counts in edges],
    )


def _captured_sampler(
    kernels: Any,
    relation: Relation,
    num_nodes: int,
    num_seeds: int,
    fanout: Sequence[int],
    replace: bool,
) -> Any | None:
    """What samples such batches as a CUDA graph, once there were a few of them."""
    of_graph = _captures.setdefault(relation.pointer, {})
    # How often batches were sampled, by number of seeds; then their sampler.
    capture = of_graph.setdefault((tuple(fanout), replace), {})
    sampler = capture.get("sampler")
    if sampler is not None and num_seeds <= sampler.batch_size:
        return sampler
    capture[num_seeds] = capture.get(num_seeds, 0) + 1
    if capture[num_seeds] > _PLAIN_CALLS:
        facts = (relation, num_nodes, num_seeds, fanout, replace)
        if kernels.can_capture(*facts):
            capture["sampler"] = kernels.CapturedSampler(*facts)
            return capture["sampler"]
    return None


def _in_use(tensors: Sequence[Tensor], counts: Sequence[Sequence[int]]) -> list[Tensor]:
    """Arrays that may be longer than the batch, cut to its size."""
    return [x[: total[-1]] for x, total in zip(tensors, counts, strict=True)]


def _differences(counts: Sequence[int]) -> list[int]:
    return [after - before for before, after in pairwise(counts)]
