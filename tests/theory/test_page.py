"""The tables of docs/theory.md are those of results/theory, rounded."""

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def results(name):
    with (ROOT / "results" / "theory" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def table_after(heading):
    """Cells of the first table below a heading line, without its own heading."""
    lines = PAGE[PAGE.index(heading) :].split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def agrees(cell, *values):
    """Every number of a cell is a value, to the digits it has."""
    shown = NUMBER.findall(cell)
    assert len(shown) == len(values), (cell, values)
    for text, value in zip(shown, values, strict=True):
        digits = len(text.partition(".")[2])
        assert float(text) == pytest.approx(float(value), abs=0.51 * 10**-digits), cell


def named(row, name):
    return row[name], row[f"{name}_low"], row[f"{name}_high"]


def test_best_temperatures():
    rows = results("best_temperature")
    for cells, row in zip(table_after("## Theorem 1: temp"), rows, strict=True):
        agrees(cells[0], row["sigma"])
        agrees(cells[1], *named(row, "best_temperature"))
        assert (cells[2] == "none") == (row["weak_logit_best"] == "inf")
        agrees(cells[2], *([] if cells[2] == "none" else [row["weak_logit_best"]]))
        for cell, name in zip(
            cells[3:], ("best_snr", "snr_at_one", "share_at_one"), strict=True
        ):
            agrees(cell, row[name])


def test_gates():
    found = {
        (float(r["tau"]), float(r["temperature"]), r["variant"]): r
        for r in results("gate_curves")
        if float(r["rho"]) == 0.5
    }
    for cells in table_after("At rho = 0.5 (label SNR"):
        tau, temperature = float(cells[0]), float(cells[1])
        for cell, variant in zip(
            cells[2:], ("ungated", "gate_first", "post_gate"), strict=True
        ):
            row = found[tau, temperature, variant]
            agrees(cell, row["snr"], row["readout_snr"])


def test_boundaries():
    found = {
        (float(r["rho"]), float(r["temperature"])): r for r in results("gate_boundary")
    }
    for cells in table_after("Below tau*(rho) the oracle gate"):
        rho = float(cells[0])
        agrees(cells[1], *named(found[rho, 1.0], "tau_star"))
        agrees(cells[2], *named(found[rho, 4.0], "tau_star"))
        agrees(cells[3], found[rho, 1.0]["tau_star_weak_logit"])


def test_learned_layers():
    rows = results("learned")
    for cells, row in zip(table_after("## A learned gate"), rows, strict=True):
        assert cells[:2] == [row["noise"], row["variant"]]
        agrees(cells[2], row["temperature"])
        agrees(cells[3], *named(row, "snr"))
        agrees(cells[5], row["accuracy"])
        for cell, name in zip(cells[6:], ("gate_observed", "gate_lost"), strict=True):
            agrees(cell, *([row[name]] if row[name] != "nan" else []))


def test_count_of_the_checks_of_the_proofs():
    rows = results("proof_steps")
    assert {row["verdict"] for row in rows} == {"holds"}
    kinds = [row["kind"] for row in rows]
    counts = [kinds.count(k) for k in ("equality", "bound", "limit", "order")]
    start = PAGE.index("checks of the two proofs hold")
    line = " ".join(PAGE[start - 20 : start + 250].split())
    assert f"**All {len(rows)} checks" in line
    assert (
        "{} equalities at 99.9 % with Holm's correction, {} bounds, {} steps towards "
        "limits and {} orders".format(*counts)
        in line
    )
