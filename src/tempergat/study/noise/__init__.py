"""The noise study: methods under controlled noise, their trends and the page."""

from tempergat.study.noise.analysis import DatasetNoise, analyse, as_json
from tempergat.study.noise.export import read_noise_csv
from tempergat.study.noise.html_page import write_noise_report
from tempergat.study.noise.moment_columns import SELECTED, Moment, layer_values
from tempergat.study.noise.page import write_page
from tempergat.study.noise.plan import NoisePlan, load_plan
from tempergat.study.noise.runs import NOISE_STORE, run_noise
from tempergat.study.noise.trends import EPOCH, Series, Trend, series_of, trends_of
from tempergat.study.noise.variants import (
    decays_temperature,
    variant_of,
    variant_of_config,
)

__all__ = [
    "EPOCH",
    "NOISE_STORE",
    "SELECTED",
    "DatasetNoise",
    "Moment",
    "NoisePlan",
    "Series",
    "Trend",
    "analyse",
    "as_json",
    "decays_temperature",
    "layer_values",
    "load_plan",
    "read_noise_csv",
    "run_noise",
    "series_of",
    "trends_of",
    "variant_of",
    "variant_of_config",
    "write_noise_report",
    "write_page",
]
