"""Tables and JSON say the same numbers, in every format."""

import csv
import io
import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tempergat.base import csv_text, files
from tempergat.base.errors import UserError
from tempergat.comparison.html_report.tables import as_html
from tempergat.comparison.report.formats import (
    Table,
    as_latex,
    as_markdown,
    as_text,
    p_value,
    signed,
)
from tempergat.comparison.report.records import as_json, as_rows
from tempergat.comparison.report.tables import notes_on_methods, result_table
from tempergat.comparison.results.comparison import Comparison
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.result import DatasetResult
from tempergat.training import LayerRecord
from tests.support.made_up_runs import METHODS, failed_run, run, study


@pytest.fixture
def result() -> DatasetResult:
    runs = study("cora", {"gcn": 79.0, "gat": 80.0, "gated": 84.0}, range(8))
    return dataset_result([*runs, failed_run("gcn", 8)], METHODS, "gat")


def test_the_table_shows_scores_differences_and_verdicts(
    result: DatasetResult,
) -> None:
    table = result_table(result)
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert rows["gat"]["verdict"] == "baseline"
    assert rows["gated"]["accuracy"].startswith("84.00 ± ")
    assert rows["gated"]["against gat"] == "+4.00"
    assert rows["gated"]["verdict"] == "better"
    assert (rows["gcn"]["runs"], rows["gcn"]["failed"]) == ("8", "1")
    assert "loss is not a number" in table.notes[-1]
    assert "1 of 9 runs failed" in table.notes[-1]


def test_without_failures_there_is_no_column_for_them() -> None:
    runs = study("cora", {"gat": 80.0}, range(3))
    table = result_table(dataset_result(runs, METHODS, "gat"))
    assert "failed" not in table.columns
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_json_is_strict_and_in_percent(result: DatasetResult) -> None:
    facts = json.loads(json.dumps(as_json(result), allow_nan=False))
    assert facts["dataset"] == "cora"
    gcn, gat, gated = facts["results"]
    assert (gcn["method"], gcn["runs"], gcn["failed"]) == ("gcn", 8, 1)
    assert gat["mean"] == pytest.approx(80.0)
    assert gat["comparison"] is None
    assert gated["comparison"]["difference"] == pytest.approx(4.0)
    assert gated["comparison"]["verdict"] == "better"
    assert len(gated["scores"]) == 8


def test_json_stays_strict_where_a_learned_value_is_no_number() -> None:
    runs = [run(seed=seed, last=LayerRecord((math.nan,), ())) for seed in range(2)]
    (facts,) = as_json(dataset_result(runs, METHODS, "gat"))["results"]
    assert facts["last"] == {"temperatures": [None], "gate_means": []}
    json.dumps(facts, allow_nan=False)


def test_csv_has_a_line_per_method_with_numbers_in_full(result: DatasetResult) -> None:
    lines = list(csv.DictReader(io.StringIO(csv_text(as_rows(result)))))
    assert [line["method"] for line in lines] == ["gcn", "gat", "gated"]
    assert float(lines[1]["std"]) == result["gat"].summary.std
    assert lines[1]["difference"] == ""
    assert float(lines[2]["difference"]) == pytest.approx(4.0)
    assert lines[2]["verdict"] == "better"


def test_markdown_rows_are_as_wide_as_their_heading(result: DatasetResult) -> None:
    lines = [
        line
        for line in as_markdown(result_table(result)).splitlines()
        if line.startswith("|")
    ]
    assert len(lines) == 5
    assert len({line.count("|") for line in lines}) == 1


def test_the_best_score_is_bold_and_the_second_underlined_as_in_the_paper() -> None:
    means = {"gcn": 79.0, "gat": 80.0, "gated": 84.0, "temp_only": 84.0}
    runs = study("cora", means, range(8), std=0.0)
    table = result_table(dataset_result(runs, METHODS, "gat"))
    markdown, latex = as_markdown(table), as_latex(table)
    for best in ("gated", "temp_only"):
        assert f"| {best} | **84.00 ± 0.00** |" in markdown
    assert "| gat | <ins>80.00 ± 0.00</ins> |" in markdown
    assert "| gcn | 79.00 ± 0.00 |" in markdown
    assert r"gated & \textbf{84.00 $\pm$ 0.00} &" in latex
    assert r"gat & \underline{80.00 $\pm$ 0.00} &" in latex
    for text in (markdown, latex):
        assert "Bold is the highest mean, underlined the second highest" in text
    assert "Bold" not in as_text(table)


def test_equal_scores_are_not_marked() -> None:
    runs = study("cora", {"gat": 80.0, "gated": 80.0}, range(3), std=0.0)
    assert result_table(dataset_result(runs, METHODS, "gat")).marks == {}


def test_latex_escapes_what_latex_would_read() -> None:
    table = Table("a_b & 100 % {x} \\y ~ ^", ("m_1", "±"), (("<0.1", "#$"),))
    text = as_latex(table)
    assert (
        r"\caption{a\_b \& 100 \% \{x\} \textbackslash{}y \textasciitilde{} "
        r"\textasciicircum{}}" in text
    )
    assert r"m\_1 & $\pm$ \\" in text
    assert r"$<$0.1 & \#\$ \\" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.001, "0.00"), (-0.004, "0.00"), (1.234, "+1.23"), (-2.0, "-2.00"), (None, "-")],
)
def test_a_difference_that_rounds_to_nothing_has_no_sign(
    value: float | None, text: str
) -> None:
    assert signed(value) == text


def test_tiny_p_values_are_given_by_bound() -> None:
    texts = [p_value(p) for p in (None, 0.0, 0.0004, 0.0312)]
    assert texts == ["-", "<0.001", "<0.001", "0.031"]


def test_a_folder_that_cannot_be_made_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UserError, match=r"cannot write .*choose another folder"):
        files.write_text(tmp_path / "out" / "a.csv", "text")


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(UserError, match="cannot write"):
        files.write_text(tmp_path / "taken", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_many_failures_are_reported_briefly() -> None:
    runs = [failed_run("gat", seed) for seed in range(50)]
    note = result_table(dataset_result(runs, ["gat"], "gat")).notes[-1]
    assert note.startswith("gat: 50 of 50 runs failed")
    assert "seed 2: " in note
    assert "seed 3: " not in note
    assert note.endswith("and 47 more).")


@pytest.mark.parametrize(
    ("runs", "words"),
    [(6, "take turns over 3 splits"), (3, "on a split of its own, one of 3")],
)
def test_the_table_says_how_many_splits_the_runs_are_on(runs: int, words: str) -> None:
    result = dataset_result(
        [run("gat", seed, split=seed % 3) for seed in range(runs)], ["gat"], "gat"
    )
    assert words in result_table(result).notes[-1]
    assert as_json(result)["splits"] == 3
    assert next(csv.DictReader(io.StringIO(csv_text(as_rows(result)))))["splits"] == "3"


def intervals(result: DatasetResult) -> list[str]:
    table = result_table(result)
    return [row[table.columns.index("95 % interval")] for row in table.rows]


def test_fewer_than_five_runs_or_splits_have_no_interval() -> None:
    for runs, has_interval in ((4, False), (5, True)):
        scores = study("cora", {"gat": 80.0}, range(runs))
        (interval,) = intervals(dataset_result(scores, METHODS, "gat"))
        assert (interval != "-") == has_interval
    split = [run("gat", seed, 0.5 + seed / 100, split=seed % 3) for seed in range(12)]
    assert intervals(dataset_result(split, METHODS, "gat")) == ["-"]


def test_an_interval_ends_where_scores_do() -> None:
    runs = [run("gat", s, test) for s, test in enumerate((0.02, 1.0, 0.02, 1.0, 1.0))]
    result = dataset_result(runs, METHODS, "gat")
    assert intervals(result) == ["0.00 to 100.00"]
    in_full = as_json(result)["results"][0]
    assert in_full["low"] == result["gat"].summary.low < 0.0
    assert in_full["high"] == result["gat"].summary.high > 100.0


def test_html_escapes_names() -> None:
    table = Table("<b>", ("a & b",), (("<script>",),), ("1 < 2",))
    text = as_html(table)
    assert "<script>" not in text
    assert "<caption>&lt;b&gt;</caption>" in text
    assert "<th>a &amp; b</th>" in text
    assert "<p>1 &lt; 2</p>" in text


def test_plain_text_lines_up_its_columns(result: DatasetResult) -> None:
    title, heading, rule, *rows = as_text(result_table(result)).splitlines()[:6]
    assert title.startswith("cora: test accuracy")
    assert set(rule) == {"-"}
    start = heading.index("verdict")
    assert [row[start:] for row in rows] == ["worse", "baseline", "better"]


HOSTILE = "\x1b]0;title\x07<script>|`*[x](y)_\uffff"


def test_markdown_shows_hostile_names_as_text() -> None:
    runs = study(HOSTILE, {"gat": 80.0, "gated": 81.0}, range(5))
    text = as_markdown(result_table(dataset_result(runs, ["gat", "gated"], "gat")))
    assert "<script" not in text
    assert r"\\x1b\]0;title" in text
    assert r"&lt;script>\|\`\*\[x\](y)\_" in text
    assert text.replace("\n", "").isprintable()


def test_a_p_value_below_its_bound_stays_as_it_is_in_markdown() -> None:
    table = Table("t", ("method", "p"), (("temp_gated", "<0.001"),))
    assert "| temp_gated | <0.001 |" in as_markdown(table)


def test_pictures_of_hostile_names_are_well_formed(tmp_path: Path) -> None:
    names = ["gat", "$x^2$\x01\ufffe"]
    runs = study(HOSTILE, dict.fromkeys(names, 80.0), range(5))
    result = dataset_result(runs, names, "gat")
    comparison = Comparison(result, runs, None, "default", "cpu", complete=True)
    *_, svg, _, _ = comparison.written_to(tmp_path).files
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")


def test_a_note_says_what_the_methods_are_and_variants_of_gatv2_once() -> None:
    def note(*methods: str) -> list[str]:
        return notes_on_methods(methods)

    assert note("gat", "gatv2", "my_layer") == []
    assert note("mlp", "gated_temp", "gated_temp_v2") == [
        "mlp: no edges (MLP); gated_temp: GAT + gate before attention + temperature; "
        "those ending in _v2: the same with GATv2."
    ]
    assert note("gatv2", "gated_v2") == ["gated_v2: GATv2 + gate after attention."]
    runs = study("cora", {"gat": 80.0, "gated": 84.0}, range(3))
    table = result_table(dataset_result(runs, METHODS, "gat"))
    assert "gated: GAT + gate after attention." in table.notes


def test_a_p_below_the_level_never_reads_as_the_level() -> None:
    shown = [p_value(p) for p in (0.0494, 0.0498, 0.04999, 0.05, 0.0502)]
    assert shown == ["0.049", "<0.050", "<0.050", "0.050", "0.050"]
