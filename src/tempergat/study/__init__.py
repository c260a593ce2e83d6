"""Studies of many runs: comparison, search, diagnosis, reports and the explorer."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from .comparison.calling import compare as compare
    from .comparison.comparison import Comparison as Comparison
    from .comparison.descriptions import note_on_residual as note_on_residual
    from .comparison.descriptions import opening_lines as opening_lines
    from .comparison.plan import Plan as Plan
    from .comparison.plan import make_plan as make_plan
    from .comparison.progress_lines import ProgressLines as ProgressLines
    from .comparison.progress_lines import Tally as Tally
    from .comparison.progress_lines import runs_done as runs_done
    from .comparison.progress_lines import search_lines as search_lines
    from .comparison.progress_lines import time_left as time_left
    from .comparison.run import STORE_NAME as STORE_NAME
    from .comparison.run import Place as Place
    from .comparison.run import finished_part as finished_part
    from .comparison.run import run_plan as run_plan
    from .comparison.run import run_shard as run_shard
    from .comparison.several.comparisons import Comparisons as Comparisons
    from .comparison.several.prepared import Prepared as Prepared
    from .comparison.several.prepared import check_prepared as check_prepared
    from .comparison.shards import FinishedShard as FinishedShard
    from .comparison.shards import refuse_tuned_shard as refuse_tuned_shard
    from .comparison.stored import stored_comparisons as stored_comparisons
    from .diagnose.screening import SCREENED as SCREENED
    from .diagnose.screening import SCREENING_EPOCHS as SCREENING_EPOCHS
    from .diagnose.screening import SCREENING_RUNS as SCREENING_RUNS
    from .diagnose.screening import Diagnosis as Diagnosis
    from .diagnose.screening import diagnose_graph as diagnose_graph
    from .diagnose.screening import diagnosis_json as diagnosis_json
    from .engine.storage.export import export_stores as export_stores
    from .engine.storage.store import Store as Store
    from .engine.sweeps.progress import OnProgress as OnProgress
    from .engine.sweeps.progress import Progress as Progress
    from .engine.sweeps.sharding import Shard as Shard
    from .explorer.node_picture import NodePicture as NodePicture
    from .explorer.node_picture import draw_node as draw_node
    from .explorer.page import explorer_page as explorer_page
    from .explorer.recording import record as record
    from .machines.merging import merge as merge
    from .machines.ray_workers import RayWorkers as RayWorkers
    from .report.formats import Table as Table
    from .report.formats import aligned as aligned
    from .report.tables import interval_text as interval_text
    from .report.words import mean_and_std as mean_and_std
    from .report.words import p_value as p_value
    from .report.words import signed as signed
    from .results import METRIC_NAMES as METRIC_NAMES
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
