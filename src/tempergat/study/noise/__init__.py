"""The noise study: methods under controlled noise, their trends and the page."""

from tempergat.study.noise.analysis import as_json
from tempergat.study.noise.page import write_page
from tempergat.study.noise.plan import NoisePlan, load_plan
from tempergat.study.noise.rows import NoiseRow, read_rows
from tempergat.study.noise.runs import run_noise, variant_of

__all__ = [
    "NoisePlan",
    "NoiseRow",
    "as_json",
    "load_plan",
    "read_rows",
    "run_noise",
    "variant_of",
    "write_page",
]
