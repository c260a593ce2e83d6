"""Many runs: trained group by group, stored in a file, exported as CSV."""

from tempergat.study.engine.export import (
    export_runs,
    export_stores,
    read_runs,
    write_runs,
)
from tempergat.study.engine.origin import Origin, elsewhere_note
from tempergat.study.engine.progress import OnProgress, Progress
from tempergat.study.engine.sharding import Shard
from tempergat.study.engine.spreading import Workers, sweep_on
from tempergat.study.engine.store import Group, Store
from tempergat.study.engine.sweeping import finished_runs, sweep
from tempergat.training import Condition, LayerRecord, Run, Scores, config_hash

__all__ = [
    "Condition",
    "Group",
    "LayerRecord",
    "OnProgress",
    "Origin",
    "Progress",
    "Run",
    "Scores",
    "Shard",
    "Store",
    "Workers",
    "config_hash",
    "elsewhere_note",
    "export_runs",
    "export_stores",
    "finished_runs",
    "read_runs",
    "sweep",
    "sweep_on",
    "write_runs",
]
