"""Makes the training of one run by several processes ready to begin."""

from __future__ import annotations

import shutil
import tempfile

from torch_geometric.data import Data

from tempergat.base import UserError
from tempergat.data import Dataset
from tempergat.sampling import Topology
from tempergat.training.ranks.full import RankedFullTraining
from tempergat.training.ranks.processes import Ranks
from tempergat.training.ranks.ranked import RankedGroup, RankedTraining
from tempergat.training.sampled.task import once_per_graph, sampled_task_of
from tempergat.training.settings.config import RunConfig
from tempergat.training.task import refuse_other_training
from tempergat.training.user_methods.user_code import BuildModule


def start_ranked_training(
    dataset: Dataset,
    config: RunConfig,
    seed: int,
    ranks: Ranks,
    build: BuildModule | None = None,
) -> RankedTraining | RankedFullTraining:
    """The training of one run by several processes, before its first epoch.

    Args:
        dataset: The graph, the same in all of them.
        config: The settings.
        seed: The run's seed.
        ranks: The processes.
        build: Builds a user's own module; None for the built-in methods.

    Raises:
        UserError: Nothing can be trained with these arguments, or the processes have
            different graphs.
    """
    refuse_other_training(dataset, config)
    if dataset.is_heterogeneous:
        raise UserError(
            "a graph with node types is trained by one process; start without torchrun"
        )
    prints = ranks.from_all(dataset.fingerprint)
    if len(set(prints)) > 1:
        other = next(r for r, found in enumerate(prints) if found != prints[0])
        raise UserError(
            f"the graph of process {other} differs from that of process 0; give all "
            "machines the same files"
        )
    _share_edges(dataset.data, ranks)
    task = sampled_task_of(dataset, config, ranks.device)
    group = RankedGroup(task, config, seed, ranks, build)
    if config.training == "full":
        return RankedFullTraining(group, config)
    return RankedTraining(group, config)


def _share_edges(data: Data, ranks: Ranks) -> None:
    """Lets all processes of a machine map the grouped edges from one file."""
    if all(count == 1 for count in ranks.from_all(ranks.local_world_size)):
        return
    edges, nodes = data.edge_index, int(data.num_nodes)
    is_writer = ranks.local_rank == 0
    folder = tempfile.mkdtemp(prefix="tempergat-edges-") if is_writer else ""
    try:
        if is_writer:
            Topology.of(edges, nodes).save(folder)
        # The processes of a machine have consecutive ranks.
        place = ranks.from_all(folder)[ranks.rank - ranks.local_rank]
        once_per_graph(edges, nodes, lambda: Topology.open(place))
        ranks.from_all(None)
    finally:
        if is_writer:
            # Mapped files stay readable.
            shutil.rmtree(folder, ignore_errors=True)


def require_same_progress(ranks: Ranks, steps: int) -> None:
    """Refuse processes that continue from different checkpoints.

    Args:
        ranks: The processes.
        steps: How many steps this one has done.

    Raises:
        UserError: They do.
    """
    done = ranks.from_all(steps)
    if len(set(done)) > 1:
        raise UserError(
            f"the processes continue from different checkpoints, after {min(done)} and "
            f"after {max(done)} steps; put --out (out= in Python) into a folder that "
            "all machines share"
        )
