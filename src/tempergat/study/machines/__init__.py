"""One sweep on several machines: Ray's workers, and the stores of shards merged."""

from tempergat.study.machines.merging import MergedStores, merge
from tempergat.study.machines.ray_workers import RayWorkers

__all__ = ["MergedStores", "RayWorkers", "merge"]
