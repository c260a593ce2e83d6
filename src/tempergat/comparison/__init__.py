"""Studies of many runs: comparison, search, reports and the explorer."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names, require_compare

if TYPE_CHECKING:
    from .api import compare as compare
    from .display import Lines as Lines
    from .display import runs_done as runs_done
    from .display import time_left as time_left
    from .explorer.model_record import record as record
    from .explorer.node_picture import NodePicture as NodePicture
    from .explorer.node_picture import draw_node as draw_node
    from .explorer.page import explorer_page as explorer_page
    from .machines.ray_workers import RayWorkers as RayWorkers
    from .options import FLAGS as FLAGS
    from .options import MOST_RUNS as MOST_RUNS
    from .options import CompareOptions as CompareOptions
    from .plan import Plan as Plan
    from .plan import make_plan as make_plan
    from .plan import read_graphs as read_graphs
    from .report.answers import WIDEST_ANSWER as WIDEST_ANSWER
    from .report.answers import Answer as Answer
    from .report.formats import Table as Table
    from .report.formats import aligned as aligned
    from .report.formats import mean_and_std as mean_and_std
    from .report.formats import signed as signed
    from .report.tables import interval_text as interval_text
    from .results.comparison import Comparison as Comparison
    from .results.comparisons import Comparisons as Comparisons
    from .results.from_store import stored_comparisons as stored_comparisons
    from .run import run_comparisons as run_comparisons
    from .storage.export import export_stores as export_stores
    from .sweeps.state import Progress as Progress
else:
    require_compare(__name__)
    __all__, __getattr__, __dir__ = lazy_names(__name__)
