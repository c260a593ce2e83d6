"""Which method wins on a graph, and is it real?"""

from tempergat.study.comparison.calling import compare
from tempergat.study.comparison.comparison import Comparison
from tempergat.study.comparison.descriptions import note_on_residual, opening_lines
from tempergat.study.comparison.plan import Plan, make_plan
from tempergat.study.comparison.progress_lines import (
    ProgressLines,
    Tally,
    runs_done,
    search_lines,
    time_left,
)
from tempergat.study.comparison.run import (
    STORE_NAME,
    Place,
    finished_part,
    run_plan,
    run_shard,
)
from tempergat.study.comparison.several import (
    AcrossGraphs,
    Comparisons,
    Prepared,
    Record,
    across_graphs,
    check_prepared,
)
from tempergat.study.comparison.shards import FinishedShard, refuse_tuned_shard
from tempergat.study.comparison.stored import stored_comparisons

__all__ = [
    "STORE_NAME",
    "AcrossGraphs",
    "Comparison",
    "Comparisons",
    "FinishedShard",
    "Place",
    "Plan",
    "Prepared",
    "ProgressLines",
    "Record",
    "Tally",
    "across_graphs",
    "check_prepared",
    "compare",
    "finished_part",
    "make_plan",
    "note_on_residual",
    "opening_lines",
    "refuse_tuned_shard",
    "run_plan",
    "run_shard",
    "runs_done",
    "search_lines",
    "stored_comparisons",
    "time_left",
]
