"""docs/noise.md, from the runs of both studies."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tempergat.base import UserError, write_into
from tempergat.study.noise import NoisePlan, load_plan
from tempergat.study.noise_findings import figures
from tempergat.study.noise_findings.claims import Claims, all_claims
from tempergat.study.noise_findings.confirmation import (
    confirmation_section,
    read_confirmation,
)
from tempergat.study.noise_findings.first_study import (
    EpochEffect,
    epoch_effects,
    first_gains,
)
from tempergat.study.noise_findings.sections import (
    accuracy_section,
    first_study_section,
    flatness_section,
    gate_section,
    method_section,
    temperature_section,
)
from tempergat.study.noise_findings.sentences import answers, first_study_answer
from tempergat.study.noise_findings.tables import (
    runs_by_dataset,
    seeds_of,
    with_complete_seeds,
)
from tempergat.study.report import filled
from tempergat.training import Run

# Folders below results/; that of the test on fresh seeds is CONFIRMATION.
FIRST_STUDY = "noise"
SECOND_STUDY = "noise_epochs"
_FIGURE = "noise-trends"


@dataclass(frozen=True)
class NoiseFindings:
    """What the page says.

    Attributes:
        page: The page.
        sentences: The answer at its top.
        claims: The tests of the second study; None without its runs.
        first_study: The trends of the first study, adjusted for the epoch.
    """

    page: Path
    sentences: tuple[str, ...]
    claims: Claims | None
    first_study: Sequence[EpochEffect]


def reproduce_noise(results: Path, docs: Path, first_plan: NoisePlan) -> NoiseFindings:
    """Write docs/noise.md and its figure.

    Args:
        results: The folder with the folders of both studies.
        docs: Folder of the page; its figure goes to `figures/` below it.
        first_plan: The plan of the first study.

    Raises:
        UserError: There are no runs of either study.
    """
    first_runs = runs_by_dataset(results / FIRST_STUDY, first_plan)
    effects = [
        effect
        for found in first_runs.values()
        for effect in epoch_effects(found, first_plan)
    ]
    plan_file = results / SECOND_STUDY / "plan.yaml"
    plan = load_plan(plan_file) if plan_file.exists() else None
    runs: dict[str, list[Run]] = {}
    present: dict[str, list[Run]] = {}
    if plan is not None:
        present = runs_by_dataset(results / SECOND_STUDY, plan)
        runs = {d: with_complete_seeds(r, plan) for d, r in present.items()}
        # Two seeds are the least that a test takes.
        runs = {d: r for d, r in runs.items() if len(seeds_of(r)) > 1}
    if not effects and not runs:
        raise UserError(f"{results} holds no runs of the noise studies; run them first")
    claims = None if plan is None or not runs else all_claims(runs, plan)
    confirmation = read_confirmation(results)
    sentences: tuple[str, ...] = (first_study_answer(effects),)
    opening, parts, ending = "", [], []
    if claims is not None and plan is not None:
        figures.claims_figure(claims, plan.feature_rms, docs / "figures" / _FIGURE)
        gains = first_gains(first_runs, first_plan, list(runs))
        sentences = answers(claims, gains)
        opening = f"""
![T against sigma, the gate against rho](figures/{_FIGURE}.svg)

{_CAPTION}{_missing(plan, present, runs)}"""
        parts = [
            accuracy_section(claims, list(runs), gains),
            temperature_section(claims, plan),
            flatness_section(claims),
            gate_section(claims),
        ]
        ending = [method_section(plan, runs)]
    if confirmation is not None:
        sentences = (*sentences, confirmation.sentence)
        parts.insert(1, confirmation_section(confirmation))
    if effects:
        parts.append(first_study_section(effects))
    answer = "\n\n".join(sentences)
    opening = filled(f"# Controlled noise\n\n{answer}\n{opening}{_origin(runs)}")
    page = write_into(docs, "noise.md", "\n".join([opening, *parts, *ending]))
    return NoiseFindings(page, sentences, claims, effects)


def findings_json(found: NoiseFindings) -> dict[str, Any]:
    """The tests as plain JSON values."""
    facts: dict[str, Any] = {
        "answer": list(found.sentences),
        "first_study": [asdict(effect) for effect in found.first_study],
        "page": str(found.page),
    }
    if found.claims is not None:
        facts |= {
            name: {
                str(moment): [asdict(cell) for cell in cells]
                for moment, cells in claim.at.items()
            }
            for name, claim in (
                ("temperature", found.claims.temperature),
                ("gate", found.claims.gate),
                ("flatness", found.claims.flatness),
            )
        }
        facts["gains"] = [
            asdict(gain) | {"verdict": gain.verdict} for gain in found.claims.gains
        ]
    return facts


_CAPTION = """\
Mean over seeds and over the paper's six methods with temperature (above) or gate
(below). Dashed: the same runs at the epoch that best validation accuracy selects, where
the first study looked.
"""


def _origin(runs: Mapping[str, Sequence[Run]]) -> str:
    made_from = "the first study's rows in `results/noise/`"
    if runs:
        count = sum(len(found) for found in runs.values())
        made_from = (
            f"{count:,} runs in `results/noise_epochs/`, which were planned in its "
            "`plan.yaml` before the first of them, and the first study's rows in "
            "`results/noise/`"
        )
    return f"""
The questions are those of the paper's figure of controlled noise: does T rise with
Gaussian noise, and does the mean gate fall with the share of missing coordinates?
`tempergat reproduce noise` makes this page from {made_from}.
"""


def _missing(
    plan: NoisePlan,
    present: Mapping[str, Sequence[Run]],
    runs: Mapping[str, Sequence[Run]],
) -> str:
    """Which datasets of the plan are left out for lack of runs."""
    needed = len(plan.methods) * len(plan.conditions) * plan.seeds
    absent = [
        f"{dataset} ({len(present.get(dataset, ()))} of {needed} runs)"
        for dataset in plan.datasets
        if dataset not in runs
    ]
    if not absent:
        return ""
    names = [name for name in plan.datasets if name not in runs]
    return f"""
**Not in these numbers: {", ".join(absent)}**, for want of device time. `tempergat
reproduce noise --run --datasets {",".join(names)} --device cuda` trains the rest. Until
then all statements are about {" and ".join(runs)} alone, also where they say that the
paper's words hold: the plan judges those by both layers of all datasets.
"""
