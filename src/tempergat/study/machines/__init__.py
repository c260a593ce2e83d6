"""One sweep on several machines: the stores of its shards merged into one."""

from tempergat.study.machines.merging import MergedStores, merge

__all__ = ["MergedStores", "merge"]
