"""Training of one run by several processes, which `torchrun` starts."""

from tempergat.training.ranks.processes import Ranks, joined_ranks
from tempergat.training.ranks.ranked import RankedTraining
from tempergat.training.ranks.starting import (
    require_same_progress,
    start_ranked_training,
)

__all__ = [
    "RankedTraining",
    "Ranks",
    "joined_ranks",
    "require_same_progress",
    "start_ranked_training",
]
