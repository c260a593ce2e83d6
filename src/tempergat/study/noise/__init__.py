"""The noise study: methods under controlled noise, their trends and the page."""

from tempergat.study.noise.analysis import as_json
from tempergat.study.noise.export import read_noise_csv
from tempergat.study.noise.page import write_page
from tempergat.study.noise.plan import NoisePlan, load_plan
from tempergat.study.noise.runs import NOISE_STORE, run_noise
from tempergat.study.noise.variants import variant_of, variant_of_config

__all__ = [
    "NOISE_STORE",
    "NoisePlan",
    "as_json",
    "load_plan",
    "read_noise_csv",
    "run_noise",
    "variant_of",
    "variant_of_config",
    "write_page",
]
