"""One test on fresh seeds: does gate-first gain under Gaussian noise?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tempergat.study.noise import NoisePlan, load_plan
from tempergat.study.noise_findings.claims import FAMILIES, Gain, gains_of
from tempergat.study.noise_findings.sentences import gain_words, with_interval
from tempergat.study.noise_findings.tables import (
    runs_by_dataset,
    seeds_of,
    with_complete_seeds,
)
from tempergat.study.report import filled, markdown_rows, p_value

# The folder below results/.
CONFIRMATION = "noise_confirm"


@dataclass(frozen=True)
class Confirmation:
    """The test, as far as there are runs.

    Attributes:
        plan: The plan.
        gain: The gain that is tested, on the datasets that have all their runs.
        single_methods: The gain of each method, for description.
        absent: The datasets that lack runs, with how many there are.
        devices: Where the runs were made.
    """

    plan: NoisePlan
    gain: Gain
    single_methods: Sequence[Gain]
    absent: Mapping[str, int]
    devices: Sequence[str]

    @property
    def sentence(self) -> str:
        """The result in a sentence."""
        start = "On fresh seeds, under Gaussian noise a gate before the attention "
        if self.absent:
            there = " and ".join(self.gain.by_dataset)
            return (
                f"{start}{gain_words(self.gain)} on {there}; the planned test needs "
                f"{', '.join(self.absent)} too."
            )
        is_so = "confirmed" if self.gain.verdict == "gains" else "not confirmed"
        return (
            f"{start}{gain_words(self.gain)}: the gain that the second study had found "
            f"without a test of it is {is_so}."
        )


def read_confirmation(results: Path) -> Confirmation | None:
    """The test from results/noise_confirm; None without runs of two seeds.

    Raises:
        UserError: A file cannot be read.
    """
    file = results / CONFIRMATION / "plan.yaml"
    if not file.exists():
        return None
    plan = load_plan(file)
    present = runs_by_dataset(results / CONFIRMATION, plan)
    complete = {d: with_complete_seeds(runs, plan) for d, runs in present.items()}
    runs = {d: r for d, r in complete.items() if len(seeds_of(r)) == plan.seeds}
    if not runs:
        return None
    _, methods, _ = FAMILIES[0]
    (gain,) = gains_of(runs, plan, [("gate-first", methods, "gaussian")])
    singles = [(method, (method,), "gaussian") for method in methods]
    absent = {d: len(present.get(d, ())) for d in plan.datasets if d not in runs}
    devices = sorted({run.device for found in runs.values() for run in found})
    return Confirmation(plan, gain, gains_of(runs, plan, singles), absent, devices)


def confirmation_section(found: Confirmation) -> str:
    """The test with its numbers, and those of single methods and datasets."""
    seeds, plan = found.plan.seed_numbers, found.plan
    levels = ", ".join(f"{level:g}" for level in plan.gaussian[1:])
    text = f"""## Gate-first under Gaussian noise, on fresh seeds

The second study had found this gain without a test of it, so it was planned as the one
test of `results/{CONFIRMATION}/plan.yaml`: seeds {seeds.start} to {seeds.stop - 1},
sigma {levels}, on {" and ".join(found.devices)}; for each seed the mean over four
methods, all levels and all datasets; a t-test. The rows of single methods are
description. {found.sentence}
"""
    rows = [
        (
            name,
            with_interval(gain.summary),
            p_value(gain.p),
            *(with_interval(one) for one in gain.by_dataset.values()),
        )
        for name, gain in (
            ("**all four**", found.gain),
            *((f"`{gain.name}`", gain) for gain in found.single_methods),
        )
    ]
    columns = ("methods", "gain", "p", *found.gain.by_dataset)
    needed = len(plan.methods) * len(plan.conditions) * plan.seeds
    missing = "".join(
        f"\n{dataset}: {count} of {needed} runs are there; `tempergat reproduce noise "
        f"--run --datasets {dataset}` trains the rest.\n"
        for dataset, count in found.absent.items()
    )
    return "\n" + filled(text) + "\n" + markdown_rows(columns, rows) + filled(missing)
