"""A dataset's result as tables (CSV, Markdown, LaTeX, plain) and as JSON."""

import csv
import io
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tempergat.base import figures as base_figures
from tempergat.base import files as atomic
from tempergat.study.engine.run import LayerRecord
from tempergat.study.report import figures as plots
from tempergat.study.results import METRIC_NAMES, DatasetResult, MethodResult

_COMPARISON_COLUMNS = (
    "baseline",
    "difference",
    "difference_low",
    "difference_high",
    "t_p",
    "t_p_holm",
    "wilcoxon_p",
    "wilcoxon_p_holm",
    "effect_size",
    "correlation",
    "pairs",
    "lost_pairs",
    "verdict",
)

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "<": "$<$",
        ">": "$>$",
        **{character: f"\\{character}" for character in "%_&#${}"},
    }
)

_SELECTION_WORDS = {
    "best_val_accuracy": "at the first epoch of best validation accuracy",
    "last_epoch": "at the last epoch",
    "best_val_loss": "at the epoch of least validation loss",
}


# In a note; the JSON has them all.
_FAILURES_SHOWN = 3
# Letters of a name that fit above a figure.
_LONGEST_TITLE = 50


@dataclass(frozen=True)
class Table:
    """Text in rows and columns, ready to be laid out.

    Attributes:
        title: One line above.
        columns: Headings.
        rows: Cells, as many to a row as there are headings.
        notes: Sentences below.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def result_table(result: DatasetResult) -> Table:
    """The table a person reads: scores, their intervals and what they show."""
    baselines = sorted(
        {r.comparison.baseline for r in result.results if r.comparison is not None}
    )
    against = f"against {baselines[0]}" if len(baselines) == 1 else "against backbone"
    any_failed = any(r.summary.failed for r in result.results)
    columns = ["method", METRIC_NAMES[result.metric], "95 % interval", "runs"]
    columns += ["failed"] if any_failed else []
    columns += [against, "p", "d", "verdict"]
    rows = tuple(_cells(r, baselines, any_failed) for r in result.results)
    return Table(
        f"{result.dataset}: test {METRIC_NAMES[result.metric]} in percent, "
        f"{_SELECTION_WORDS[result.selection]}",
        tuple(columns),
        rows,
        _notes(result, bool(baselines)),
    )


def as_json(result: DatasetResult) -> dict[str, Any]:
    """The result as plain JSON values, scores in percent."""
    return {
        "dataset": result.dataset,
        "metric": result.metric,
        "selection": result.selection,
        "pairing": result.pairing,
        "splits": result.splits,
        "results": [_record(r) for r in result.results],
    }


def as_csv(result: DatasetResult) -> str:
    """One line per method, numbers in full."""
    lines = []
    for r in result.results:
        record = _record(r)
        comparison = record.pop("comparison") or {}
        for name in ("scores", "failures", "selected", "last"):
            del record[name]
        lines.append(
            {
                "dataset": result.dataset,
                "metric": result.metric,
                "selection": result.selection,
                "splits": result.splits,
                **record,
                **{name: comparison.get(name) for name in _COMPARISON_COLUMNS},
            }
        )
    return csv_text(lines)


def as_markdown(table: Table) -> str:
    """A pipe table under its title, the notes below it."""
    return f"**{table.title}**\n\n{markdown_rows(table.columns, table.rows)}" + "".join(
        f"\n{note}\n" for note in table.notes
    )


def markdown_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table, its first column to the left and the others to the right."""
    rule = ["---", *("---:" for _ in columns[1:])]
    lines = [columns, rule, *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n"
        for line in lines
    )


def as_latex(table: Table) -> str:
    """A booktabs table."""
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{_latex(table.title)}}}",
        f"\\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        "\\toprule",
        _latex_line(table.columns),
        "\\midrule",
        *(_latex_line(row) for row in table.rows),
        "\\bottomrule",
        "\\end{tabular}",
        *(f"\\par\\smallskip {_latex(note)}" for note in table.notes),
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def write_result(
    result: DatasetResult, folder: Path, baseline: str | None = None
) -> list[Path]:
    """Write a result's tables and its figure.

    Args:
        result: What to write.
        folder: Where; made when missing.
        baseline: The method whose mean is drawn across the figure.

    Returns:
        The files: CSV, Markdown, LaTeX, SVG, PNG.
    """
    table = result_table(result)
    stem = folder / atomic.file_stem(result.dataset)
    paths = []
    for suffix, text in (
        (".csv", as_csv(result)),
        (".md", as_markdown(table)),
        (".tex", as_latex(table)),
    ):
        path = Path(f"{stem}{suffix}")
        atomic.write_text(path, text)
        paths.append(path)
    return [*paths, *write_figure(result, stem, baseline)]


def write_figure(
    result: DatasetResult, stem: Path, baseline: str | None = None
) -> tuple[Path, Path]:
    """Draw every run of a result, with means and intervals, as SVG and PNG."""
    figure = plots.scores_figure(
        f"{_drawable(result.dataset)}, {_runs_in_words(result)}",
        f"test {METRIC_NAMES[result.metric]} (%)",
        {r.method: list(r.scores.values()) for r in result.results},
        {r.method: r.summary for r in result.results},
        baseline if baseline in result.methods else None,
    )
    with warnings.catch_warnings():
        # Letters that the font lacks are drawn as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        return base_figures.save_figure(figure, stem)


def csv_text(lines: Sequence[dict[str, Any]]) -> str:
    """CSV with the first line's keys as headings; None is an empty cell."""
    buffer = io.StringIO()
    writer = csv.DictWriter(
        buffer, list(lines[0]) if lines else [], lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()


def percent(value: float | None, digits: int = 2) -> str:
    """A score as text; a dash for none."""
    return "-" if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 2) -> str:
    """A difference as text, its sign always shown; a dash for none."""
    if value is None:
        return "-"
    text = f"{value:+.{digits}f}"
    return text if float(text) != 0.0 else f"{0:.{digits}f}"


def mean_and_std(mean: float | None, std: float | None) -> str:
    """`81.35 ± 0.95`, as the paper writes it."""
    return percent(mean) if std is None else f"{percent(mean)} ± {percent(std)}"


def p_value(p: float | None) -> str:
    """A p as text: three digits after the point, tiny ones by bound."""
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _cells(
    result: MethodResult, baselines: Sequence[str], any_failed: bool
) -> tuple[str, ...]:
    summary, comparison = result.summary, result.comparison
    interval = (
        "-"
        if summary.low is None
        else f"{percent(summary.low)} to {percent(summary.high)}"
    )
    cells = [
        result.method,
        mean_and_std(summary.mean, summary.std),
        interval,
        str(summary.runs),
    ]
    cells += [str(summary.failed)] if any_failed else []
    if comparison is None:
        return (
            *cells,
            "-",
            "-",
            "-",
            "baseline" if result.method in baselines else "-",
        )
    return (
        *cells,
        signed(comparison.difference),
        p_value(comparison.t_p_holm),
        signed(comparison.effect_size),
        comparison.verdict,
    )


def _notes(result: DatasetResult, compared: bool) -> tuple[str, ...]:
    notes = []
    if compared:
        notes.append(
            f"Means ± standard deviation over runs. Differences over paired "
            f"{result.pairing}; p: paired t-test, Holm-corrected; d: Cohen's d of the "
            "pairs; within noise: p of 0.05 or more."
        )
    if result.splits > 1:
        most = max(r.summary.runs + r.summary.failed for r in result.results)
        notes.append(
            f"The runs take turns over {result.splits} splits; runs that share one "
            "count as one, by their mean, in intervals and pairs."
            if most > result.splits
            else f"Each run is on a split of its own, one of {result.splits}."
        )
    notes += [
        f"{r.method}: {r.summary.failed} of {r.summary.runs + r.summary.failed} runs "
        f"failed and are not in its mean ({_listed(r.failures)})."
        for r in result.results
        if r.failures
    ]
    return tuple(notes)


def _listed(failures: Sequence[str]) -> str:
    shown = "; ".join(failures[:_FAILURES_SHOWN])
    more = len(failures) - _FAILURES_SHOWN
    return f"{shown}; and {more} more" if more > 0 else shown


def _drawable(name: str) -> str:
    """A name as a figure's title: not too long, and no formula in it."""
    short = name if len(name) <= _LONGEST_TITLE else f"{name[: _LONGEST_TITLE - 1]}…"
    return short.replace("$", r"\$")


def _runs_in_words(result: DatasetResult) -> str:
    counts = sorted({r.summary.runs for r in result.results})
    if len(counts) == 1:
        return f"{counts[0]} runs each"
    return f"{counts[0]} to {counts[-1]} runs each"


def _record(result: MethodResult) -> dict[str, Any]:
    comparison = None
    if result.comparison is not None:
        comparison = asdict(result.comparison)
        del comparison["method"]
        comparison["difference_low"] = comparison.pop("low")
        comparison["difference_high"] = comparison.pop("high")
    return {
        "method": result.method,
        **asdict(result.summary),
        "time_s": result.time_s,
        "comparison": comparison,
        "scores": {str(seed): score for seed, score in result.scores.items()},
        "failures": list(result.failures),
        "selected": _layers(result.selected),
        "last": _layers(result.last),
    }


def _layers(record: LayerRecord) -> dict[str, list[float | None]]:
    return {
        name: [value if math.isfinite(value) else None for value in values]
        for name, values in asdict(record).items()
    }


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(_latex(cell) for cell in cells) + r" \\"


def _latex(text: str) -> str:
    return text.translate(_LATEX)
