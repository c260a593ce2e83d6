"""Studies of many runs: comparison, search, diagnosis, reports and the explorer."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from .calling import compare as compare
    from .comparison import Comparison as Comparison
    from .descriptions import note_on_residual as note_on_residual
    from .descriptions import opening_lines as opening_lines
    from .explorer.model_record import record as record
    from .explorer.node_picture import NodePicture as NodePicture
    from .explorer.node_picture import draw_node as draw_node
    from .explorer.page import explorer_page as explorer_page
    from .machines.merge import merge as merge
    from .machines.ray_workers import RayWorkers as RayWorkers
    from .plan import Plan as Plan
    from .plan import make_plan as make_plan
    from .progress_lines import ProgressLines as ProgressLines
    from .progress_lines import Tally as Tally
    from .progress_lines import runs_done as runs_done
    from .progress_lines import search_lines as search_lines
    from .progress_lines import time_left as time_left
    from .report.formats import Table as Table
    from .report.formats import aligned as aligned
    from .report.formats import mean_and_std as mean_and_std
    from .report.formats import p_value as p_value
    from .report.formats import signed as signed
    from .report.tables import interval_text as interval_text
    from .results import METRIC_NAMES as METRIC_NAMES
    from .run import STORE_NAME as STORE_NAME
    from .run import Place as Place
    from .run import finished_part as finished_part
    from .run import run_plan as run_plan
    from .run import run_shard as run_shard
    from .screening import SCREENED as SCREENED
    from .screening import SCREENING_EPOCHS as SCREENING_EPOCHS
    from .screening import SCREENING_RUNS as SCREENING_RUNS
    from .screening import Diagnosis as Diagnosis
    from .screening import diagnose_graph as diagnose_graph
    from .screening import diagnosis_json as diagnosis_json
    from .several.comparisons import Comparisons as Comparisons
    from .several.prepared import Prepared as Prepared
    from .several.prepared import check_prepared as check_prepared
    from .shards import FinishedShard as FinishedShard
    from .shards import refuse_tuned_shard as refuse_tuned_shard
    from .storage.export import export_stores as export_stores
    from .storage.store import Store as Store
    from .stored import stored_comparisons as stored_comparisons
    from .sweeps.shards import Shard as Shard
    from .sweeps.state import OnProgress as OnProgress
    from .sweeps.state import Progress as Progress
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
