"""Companies in tables whose columns have very different scales."""

import csv
from pathlib import Path

import numpy as np

COLUMNS = ("employees", "revenue", "founded", "listed")


def write_companies(
    folder: Path, n: int = 240, seed: int = 0, columns: tuple[str, ...] = COLUMNS
) -> Path:
    """The year of its foundation says the class of a company, and so do its partners.

    Args:
        folder: Where the tables go; made when missing.
        n: How many companies.
        seed: Draws them.
        columns: The features, in the order of the table.
    """
    draw = np.random.default_rng(seed)
    founded = draw.integers(1950, 2022, n)
    risk = (founded > 1985) ^ (draw.random(n) < 0.1)
    values = {
        "employees": np.round(np.exp(draw.normal(4, 1.5, n))),
        "revenue": np.round(np.exp(draw.normal(8, 1.5, n))),
        "founded": founded,
        "listed": draw.integers(0, 2, n),
    }
    names = [f"c{number}" for number in range(n)]
    words = np.where(risk, "high", "low")
    rows = zip(names, words, *(values[name] for name in columns), strict=True)
    _write(folder / "nodes.csv", ("id", "label", *columns), rows)
    same = [draw.choice(np.flatnonzero(risk == risk[at]), 3) for at in range(n)]
    pairs = {(min(a, b), max(a, b)) for a in range(n) for b in same[a] if a != b}
    ends = sorted(pairs)
    since = draw.integers(1995, 2024, len(ends))
    edges = (
        (names[a], names[b], year) for (a, b), year in zip(ends, since, strict=True)
    )
    _write(folder / "edges.csv", ("source", "target", "since"), edges)
    return folder


def _write(path: Path, header: tuple[str, ...], rows: object) -> None:
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows(rows)
