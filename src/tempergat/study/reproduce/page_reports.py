"""The report of a page of docs/: one HTML file that needs nothing else."""

import html
from collections.abc import Sequence
from pathlib import Path

from tempergat.base import write_into
from tempergat.study.comparison import Comparison, Comparisons
from tempergat.study.engine import Run, read_runs
from tempergat.study.html_report import (
    Overview,
    facts_list,
    markdown_html,
    page_html,
    report_html,
)
from tempergat.study.paper import (
    BACKBONE_OF,
    HETEROGENEOUS,
    HOMOGENEOUS,
    PAPER_METHODS,
    read_paper,
)
from tempergat.study.reproduce.page import Page, Written
from tempergat.study.results import dataset_result
from tempergat.training import SELECTION_RULES

# The pages about runs that are compared on several graphs, with these graphs.
_COMPARISONS = {"homogeneous": HOMOGENEOUS, "heterogeneous": HETEROGENEOUS}

_OUTCOME_WORDS = {
    "holds": "hold",
    "within noise": "are within noise",
    "reversed": "are reversed",
    "too few runs": "have too few runs",
}


def write_page_report(page: Page, written: Written, results: Path, path: Path) -> Path:
    """Write the report of a page that was written.

    A page that compares runs on several graphs gets an overview and a section for each
    graph. Of other pages the report has the text, tables and figures.

    Args:
        page: The page.
        written: What was written of it.
        results: The folder of results it was made from.
        path: The file.

    Returns:
        The file.
    """
    if page.name in _COMPARISONS:
        return _compared(page.name, written, results, path)
    text = _text_of(page, written)
    folder = written.path.parent
    title, body = markdown_html(text, folder)
    facts = {
        "command": f"tempergat reproduce {page.name}",
        "made from": ", ".join(f"results/{pattern}" for pattern in page.reads),
    }
    content = (
        f'<section aria-label="{html.escape(title)}">\n{body}\n'
        f"<h3>How to repeat this</h3>\n{facts_list(facts)}\n</section>"
    )
    return write_into(path.parent, path.name, page_html(title, content))


def _text_of(page: Page, written: Written) -> str:
    """The page in Markdown; where figures alone were written, its lines and these."""
    if written.path.is_file():
        return written.path.read_text(encoding="utf-8")
    parts = [f"# {page.name.capitalize()}", "\n".join(written.lines)]
    for file in sorted(written.path.glob("*.svg")):
        words = file.stem.replace("_", " ").capitalize()
        parts.append(f"![{words}]({written.path.name}/{file.name})")
    return "\n\n".join(parts)


def _compared(name: str, written: Written, results: Path, path: Path) -> Path:
    runs = read_runs(results / f"{name}.csv")
    found = Comparisons(
        tuple(
            _comparison(of_one)
            for dataset in _COMPARISONS[name]
            if (of_one := [run for run in runs if run.dataset == dataset])
        )
    )
    command = f"tempergat reproduce {name}"
    sections = [comparison.section(command) for comparison in found]
    overview = Overview(
        _gains(written),
        found.across.ranks,
        (found.summary, found.scores),
        lead=_first_paragraph(written.path),
    )
    page = report_html(sections, overview)
    return write_into(path.parent, path.name, page)


def _gains(written: Written) -> str:
    """How many of the paper's gains our runs show."""
    outcomes = [
        claim["outcome"]
        for claim in written.facts["claims"]
        if claim["rule"] == SELECTION_RULES[0] and claim["outcome"] is not None
    ]
    counts = [
        f"{outcomes.count(outcome)} {words}"
        for outcome, words in _OUTCOME_WORDS.items()
        if outcome in outcomes
    ]
    return (
        f"of {len(outcomes)} gains in the paper's table {', '.join(counts)}, at the "
        "epoch of best validation accuracy"
    )


def _comparison(runs: Sequence[Run]) -> Comparison:
    dataset = runs[0].dataset
    metric = next(iter(read_paper()[dataset].values())).metric
    return Comparison(
        result=dataset_result(runs, PAPER_METHODS, BACKBONE_OF, metric, all_pairs=True),
        runs=list(runs),
        baseline=None,
        recipe=f"paper/{dataset}",
        device=", ".join(sorted({run.device for run in runs})),
        complete=True,
    )


def _first_paragraph(page: Path) -> str:
    """The answer of a page: what follows its title."""
    _, answer, *_ = page.read_text(encoding="utf-8").split("\n\n")
    return " ".join(answer.split())
