"""Many runs: trained group by group, stored in a file, exported as CSV."""

from tempergat.study.engine.origin import Origin, elsewhere_note
from tempergat.study.engine.storage import (
    Group,
    Store,
    export_runs,
    export_stores,
    read_runs,
    write_runs,
)
from tempergat.study.engine.sweeps import (
    OnProgress,
    Progress,
    Shard,
    Workers,
    finished_runs,
    hash_of,
    sweep,
    sweep_on,
)
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
    "hash_of",
    "read_runs",
    "sweep",
    "sweep_on",
    "write_runs",
]
