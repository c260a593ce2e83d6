"""Training of many runs: what is left to do, who trains it, and how far it is."""

from tempergat.study.engine.sweeps.agenda import hash_of
from tempergat.study.engine.sweeps.progress import OnProgress, Progress
from tempergat.study.engine.sweeps.sharding import Shard
from tempergat.study.engine.sweeps.spreading import Workers, sweep_on
from tempergat.study.engine.sweeps.sweeping import finished_runs, sweep

__all__ = [
    "OnProgress",
    "Progress",
    "Shard",
    "Workers",
    "finished_runs",
    "hash_of",
    "sweep",
    "sweep_on",
]
