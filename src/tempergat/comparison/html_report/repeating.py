"""All that is needed to repeat a comparison."""

import html
import json
from typing import TYPE_CHECKING, Any

from tempergat.comparison.html_report.parts import copy_buttons, facts_list

if TYPE_CHECKING:
    from tempergat.comparison.html_report.section import Section


def repeating_part(section: "Section") -> str:
    """Command, recipe, settings, versions, device and fingerprints.

    Args:
        section: One graph's comparison.
    """
    runs = section.runs
    settings = ", ".join(f"{name} {value}" for name, value in section.settings.items())
    seeds = sorted({run.seed for run in runs})
    facts = {
        "command": section.command or "",
        "recipe": section.recipe,
        "changed settings": settings,
        "seeds": _span(seeds),
        "device": ", ".join(sorted({run.device for run in runs})),
        "versions": _versions(section),
        "fingerprint of the graph and its splits": ", ".join(
            dict.fromkeys(
                run.fingerprint for run in sorted(runs, key=lambda run: run.split)
            )
        ),
        "version of the numerics": ", ".join(
            sorted({str(run.numerics) for run in runs})
        ),
    }
    configs = _settings(section)
    text = json.dumps(configs, indent=1, sort_keys=True, default=str)
    return (
        facts_list(facts) + "<details><summary>Every setting of every method</summary>"
        f'<pre class="scroll" tabindex="0">{html.escape(text)}</pre></details>'
        + copy_buttons("settings", {"settings": text})
    )


def _settings(section: "Section") -> dict[str, dict[str, Any]]:
    """The settings of each method; where they differ by split, of each split."""
    hashes = {(run.method, run.config_hash) for run in section.runs}
    if len(hashes) == len({run.method for run in section.runs}):
        return {run.method: dict(run.config) for run in section.runs}
    return {
        f"{run.method}, split {run.split}": dict(run.config) for run in section.runs
    }


def _span(seeds: list[int]) -> str:
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _versions(section: "Section") -> str:
    found = {tuple(sorted(run.versions.items())) for run in section.runs}
    return "; ".join(
        ", ".join(f"{name} {version}" for name, version in versions)
        for versions in sorted(found)
    )
