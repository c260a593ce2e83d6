"""Numbers as text, and a table as plain text, Markdown, LaTeX and CSV."""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tempergat.base import printable

_GAP = "  "
_ON_MARKS = (
    "Bold is the {best} mean, underlined the second {best}, whether or not a test "
    "tells them from others."
)
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "†": r"$\dagger$",
        "<": "$<$",
        ">": "$>$",
        **{character: f"\\{character}" for character in "%_&#${}"},
    }
)
# What would end a cell, or begin code, emphasis, a link or a picture. Method names
# contain underscores, which mean nothing inside a word; nor does a star between spaces.
_MARKDOWN = re.compile(r"[\\|`\[\]]|\b_|_\b|\*(?=\S)|(?<=\S)\*")
# Elsewhere "<" means nothing, as in a p-value.
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def signed(value: float | None, digits: int = 2) -> str:
    """A difference as text with its sign; a dash for None."""
    if value is None:
        return "-"
    text = f"{value:+.{digits}f}"
    return text if float(text) != 0.0 else f"{0:.{digits}f}"


def mean_and_std(mean: float | None, std: float | None, digits: int = 2) -> str:
    """`81.35 ± 0.95`, as the paper writes it."""
    if mean is None:
        return "-"
    text = f"{mean:.{digits}f}"
    return text if std is None else f"{text} ± {std:.{digits}f}"


def p_value(p: float | None) -> str:
    """A p-value with three decimals; below that `<0.001`, just below 0.05 `<0.050`."""
    if p is None:
        return "-"
    if p < 0.001:
        return "<0.001"
    return "<0.050" if 0.0495 <= p < 0.05 else f"{p:.3f}"


@dataclass(frozen=True)
class Table:
    """Text in rows and columns.

    Attributes:
        title: One line above.
        columns: Headings.
        rows: Cells, one for each heading.
        notes: Sentences below. One that begins with the name of a column and a colon
            explains this column.
        footer: Rows below the others, which sorting leaves there.
        scores: Columns, from 0, whose best cell is bold and whose second best is
            underlined, as in the paper; equal cells share a mark.
        lower: Those of them whose lowest cell is the best; in others it is the highest.
        urgent: Those of the notes that a terminal shows without being asked.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    footer: tuple[tuple[str, ...], ...] = ()
    scores: tuple[int, ...] = ()
    lower: tuple[int, ...] = ()
    urgent: tuple[str, ...] = ()

    @property
    def marks(self) -> dict[tuple[int, int], str]:
        """`best` and `second` by row and column; none in a column of equal scores."""
        marks: dict[tuple[int, int], str] = {}
        for column in self.scores:
            texts = {row: line[column] for row, line in enumerate(self.rows)}
            values = {n: float(t.split()[0]) for n, t in texts.items() if t != "-"}
            best = sorted(set(values.values()), reverse=column not in self.lower)[:2]
            if len(best) == 2:
                names = dict(zip(best, ("best", "second"), strict=True))
                marks |= {
                    (n, column): names[v] for n, v in values.items() if v in names
                }
        return marks

    @property
    def all_rows(self) -> tuple[tuple[str, ...], ...]:
        """The rows with those of the footer."""
        return self.rows + self.footer

    @property
    def notes_on_marks(self) -> tuple[str, ...]:
        """The notes, the first on what bold and underlined scores are."""
        words = {0: "highest", len(self.scores): "lowest"}
        on_marks = _ON_MARKS.format(best=words.get(len(self.lower), "best"))
        return (on_marks, *self.notes) if self.marks else self.notes

    def notes_without(self, hidden: Collection[str]) -> list[str]:
        """The notes, but for those that explain a hidden column.

        Args:
            hidden: Headings of the columns that are not shown.
        """
        starts = tuple(f"{column}: " for column in hidden)
        return [note for note in self.notes if not note.startswith(starts)]


def as_text(table: Table) -> str:
    """The table in aligned columns under its title, the notes below it."""
    heading, *rows = (
        _GAP.join(cells).rstrip() for cells in aligned([table.columns, *table.all_rows])
    )
    rule = "-" * max(len(line) for line in (heading, *rows))
    return "\n".join([table.title, heading, rule, *rows, *table.notes])


def aligned(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Cells padded to the width of their column, numbers to the right.

    Args:
        lines: The headings, then the rows.
    """
    columns = []
    for heading, *cells in zip(*lines, strict=True):
        width = max(len(text) for text in (heading, *cells))
        is_numeric = any(c[:1] in "+-.0123456789<" and c != "-" for c in cells)
        columns.append(
            [
                text.rjust(width) if is_numeric else text.ljust(width)
                for text in (heading, *cells)
            ]
        )
    return [list(line) for line in zip(*columns, strict=True)]


def as_markdown(table: Table) -> str:
    """A pipe table under its title, the notes below it; names are plain text in it."""
    columns, *footer = (
        [_markdown(cell) for cell in line] for line in (table.columns, *table.footer)
    )
    looks = {"best": "**{}**", "second": "<ins>{}</ins>"}
    rows = [*_marked(table, _markdown, looks), *footer]
    rule = ["---", *("---:" for _ in columns[1:])]
    return "".join(
        [
            f"**{_markdown(table.title)}**\n\n",
            *("| " + " | ".join(line) + " |\n" for line in (columns, rule, *rows)),
            *(f"\n{_markdown(note)}\n" for note in table.notes_on_marks),
        ]
    )


def as_latex(table: Table) -> str:
    """A booktabs table."""
    looks = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}"}
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{_latex(table.title)}}}",
        f"\\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        "\\toprule",
        _latex_line(map(_latex, table.columns)),
        "\\midrule",
        *(_latex_line(row) for row in _marked(table, _latex, looks)),
        *(["\\midrule"] if table.footer else []),
        *(_latex_line(map(_latex, row)) for row in table.footer),
        "\\bottomrule",
        "\\end{tabular}",
        *(f"\\par\\smallskip {_latex(note)}" for note in table.notes_on_marks),
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def as_plain_csv(table: Table) -> str:
    """The headings and the cells as CSV, as people read them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.columns, *table.all_rows])
    return text.getvalue()


def _marked(
    table: Table, escape: Callable[[str], str], looks: Mapping[str, str]
) -> list[list[str]]:
    """The rows as escaped text, with the marks of best and second best."""
    marks = table.marks
    return [
        [
            looks[marks[row, column]].format(escape(cell))
            if (row, column) in marks
            else escape(cell)
            for column, cell in enumerate(line)
        ]
        for row, line in enumerate(table.rows)
    ]


def _latex_line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex(text: str) -> str:
    return printable(text).translate(_LATEX)


def _markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    escaped = _MARKDOWN.sub(r"\\\g<0>", printable(text))
    return _TAG.sub("&lt;", escaped)
