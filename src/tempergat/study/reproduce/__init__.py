"""Pages of docs/ made from results/, and the training of what results/ lacks."""

from tempergat.study.reproduce.jobs import Job, Stock, Workspace
from tempergat.study.reproduce.page import Outcome, Page, Written, run_page
from tempergat.study.reproduce.page_reports import write_page_report
from tempergat.study.reproduce.pages import PAGES
from tempergat.study.reproduce.plan import JobPlan, PagePlan, plan_page

__all__ = [
    "PAGES",
    "Job",
    "JobPlan",
    "Outcome",
    "Page",
    "PagePlan",
    "Stock",
    "Workspace",
    "Written",
    "plan_page",
    "run_page",
    "write_page_report",
]
