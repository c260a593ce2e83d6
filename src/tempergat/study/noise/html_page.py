"""The report of the noise study: its page, with figures drawn for it, as one file."""

import html
from collections.abc import Sequence
from pathlib import Path

from tempergat.base import write_into
from tempergat.study.html_report import facts_list, limits, markdown_html, page_html
from tempergat.study.noise.analysis import DatasetNoise
from tempergat.study.noise.level_charts import level_charts
from tempergat.study.noise.page import page_text
from tempergat.study.noise.plan import NoisePlan

_LIMITS = (
    "Other settings: each method has one recipe, and another can change how T and "
    "gates move.",
    "Noise on edges or labels: only the features are changed.",
    "Accuracy: a trend says that a value moves with the noise, not that accuracy gains "
    "by it.",
)
_CAPTION = (
    "Means over seeds; bands are their 95 % intervals. Levels are equally spaced."
)


def write_noise_report(
    plan: NoisePlan,
    found: Sequence[DatasetNoise],
    path: Path,
    command: str | None = None,
) -> Path:
    """Write the report.

    Args:
        plan: The plan of the study.
        found: The trends on each dataset.
        path: The file.
        command: What was typed to make it, for those who repeat it.

    Returns:
        The file.
    """
    drawn = {
        f"figures/noise-{dataset.dataset}-{name}.svg": svg
        for dataset in found
        for name, svg in level_charts(dataset, plan)
    }
    text = page_text(plan, found)
    title, body = markdown_html(text, path.parent, drawn, _CAPTION)
    answers = "".join(f"<li>{html.escape(one.sentence)}</li>" for one in found)
    content = (
        f'<section aria-label="{html.escape(title)}">\n'
        f'<p class="answer">{html.escape(_answer(found))}</p>\n'
        f'{limits(_LIMITS)}\n<ul class="answers">{answers}</ul>\n{body}\n'
        "<h3>How to repeat this</h3>\n"
        f"{facts_list(_facts(plan, found, command))}\n</section>"
    )
    return write_into(path.parent, path.name, page_html(title, content))


def _answer(found: Sequence[DatasetNoise]) -> str:
    """What all datasets show together, at the last epoch where it was recorded."""
    has_last = all(one.last_temperature or one.last_gate for one in found)
    rises = [
        trend.direction == "rises"
        for one in found
        for trend in (one.last_temperature if has_last else one.temperature)
    ]
    falls = [
        trend.direction == "falls"
        for one in found
        for trend in (one.last_gate if has_last else one.gate)
    ]
    return (
        f"With Gaussian noise the learned temperature rises in {sum(rises)} of "
        f"{len(rises)} layers and variants; with missing coordinates the mean gate "
        f"falls in {sum(falls)} of {len(falls)}."
    )


def _facts(
    plan: NoisePlan, found: Sequence[DatasetNoise], command: str | None
) -> dict[str, str]:
    runs = [run for one in found for run in one.runs]
    versions = {f"{name} {v}" for run in runs for name, v in run.versions.items()}
    return {
        "command": command or "",
        "methods": ", ".join(plan.methods),
        "seeds": f"{plan.seed_numbers[0]} to {plan.seed_numbers[-1]}",
        "sigma": ", ".join(f"{level:g}" for level in plan.gaussian),
        "rho": ", ".join(f"{level:g}" for level in plan.missing),
        "tau": ", ".join(f"{tau:g}" for tau in plan.tau),
        "device": ", ".join(sorted({run.device for run in runs})),
        "versions": ", ".join(sorted(versions)),
        "graph and settings": ", ".join(
            sorted({str(run.config["study"]) for run in runs if "study" in run.config})
        ),
    }
