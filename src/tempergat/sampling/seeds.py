"""The nodes a sampler makes batches of, and which of them a batch has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.sampling.engines.draws import shuffled


@dataclass(frozen=True)
class SeedBatches:
    """Cuts seeds into the batches of an epoch.

    A step is one global batch of ``batch_size * world_size`` seeds, which the ranks
    share: rank 0 has its first seeds. So the batches of an epoch do not depend on who
    makes them, and every seed is in exactly one rank's batch. Where the last global
    batch is too short for all, a rank may have a batch without seeds.

    Attributes:
        seeds: The nodes, int64.
        batch_size: Seeds of a batch of one rank.
        seed: The seed of the epochs' orders.
        shuffle: Whether each epoch has its own order.
        drop_last: Whether the last batch is left out if it is too short.
        rank: Whose batches these are.
        world_size: Number of ranks.
    """

    seeds: Tensor
    batch_size: int
    seed: int
    shuffle: bool
    drop_last: bool
    rank: int
    world_size: int

    def __len__(self) -> int:
        whole = self.batch_size * self.world_size
        count = self.seeds.size(0)
        return count // whole if self.drop_last else -(-count // whole)

    def order(self, epoch: int) -> Tensor:
        """The seeds' places in the order of an epoch, int64."""
        count = self.seeds.size(0)
        if self.shuffle:
            return shuffled(self.seed, epoch, count)
        return torch.arange(count)

    def places(self, order: Tensor, step: int) -> Tensor:
        """The places among the seeds that this rank's batch of a step has."""
        whole = self.batch_size * self.world_size
        batch = order[step * whole : (step + 1) * whole]
        first, last = (
            batch.size(0) * part // self.world_size
            for part in (self.rank, self.rank + 1)
        )
        return batch[first:last]


def checked_seeds(
    seeds: Tensor | Sequence[int] | None, num_nodes: int, of_type: str = ""
) -> Tensor:
    """Seeds as node numbers, int64.

    Args:
        seeds: Node numbers, a mask over the nodes, or None for all nodes.
        num_nodes: Number of nodes.
        of_type: The node type, for messages.

    Raises:
        UserError: There are none, one does not exist, or one is there twice.
    """
    kind = f" of type '{of_type}'" if of_type else ""
    if seeds is None:
        ids = torch.arange(num_nodes)
    else:
        try:
            ids = torch.as_tensor(seeds).cpu()
        except (TypeError, ValueError, RuntimeError):
            raise UserError(
                f"seeds must be a list of node numbers or a mask, got {seeds!r}"
            ) from None
        if ids.dtype == torch.bool:
            if ids.shape != (num_nodes,):
                raise UserError(
                    f"the mask of seeds has shape {list(ids.shape)}, but there are "
                    f"{num_nodes} nodes{kind}; give one entry per node"
                )
            ids = ids.nonzero().squeeze(1)
        elif ids.numel() and (ids.dim() != 1 or ids.is_floating_point()):
            raise UserError(
                f"seeds must be a list of node numbers or a mask, got {ids.dtype} of "
                f"shape {list(ids.shape)}"
            )
        ids = ids.long()
    if ids.numel() == 0:
        raise UserError(f"there are no seeds{kind}; give at least one node")
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= num_nodes:
        raise UserError(
            f"seed {low if low < 0 else high} does not exist: there are {num_nodes} "
            f"nodes{kind} (0..{num_nodes - 1})"
        )
    ascending = ids.sort().values
    twice = (ascending[1:] == ascending[:-1]).nonzero()
    if twice.numel():
        raise UserError(
            f"seed {int(ascending[int(twice[0])])} is given more than once; pass "
            "seeds.unique()"
        )
    return ids
