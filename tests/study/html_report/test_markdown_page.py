"""Pages of docs/ as HTML: nothing is lost, and nothing in them is taken for HTML."""

from pathlib import Path

from tempergat.study.html_report import markdown_html

PAGE = """# The title of `this` page

The answer, in **two**
lines with \\_marks\\_ and [a link](elsewhere.md).

- first
  item with <b>
- second

## A part

| name | score |
| --- | ---: |
| gat \\| one | 81.04 ± 0.75 |
| gcn | 9.5 |

![A picture](figures/one.svg)

![Not there](figures/two.svg)
"""


def body_of(folder: Path, drawn: dict[str, str] | None = None) -> str:
    title, body = markdown_html(PAGE, folder, drawn)
    assert title == "The title of this page"
    return body


def test_words_lists_and_headings_are_kept(tmp_path: Path) -> None:
    body = body_of(tmp_path)
    answer = "The answer, in <strong>two</strong> lines with _marks_ and a link."
    assert body.startswith(f'<p class="lead">{answer}</p>')
    assert "<ul><li>first item with &lt;b&gt;</li><li>second</li></ul>" in body
    assert "<h2>A part</h2>" in body


def test_a_table_is_sorted_by_its_numbers(tmp_path: Path) -> None:
    body = body_of(tmp_path)
    assert '<th scope="row" data-key="gat | one">gat | one</th>' in body
    assert '<td data-key="81.04">81.04 ± 0.75</td><' in body
    assert '<td data-key="9.5">9.5</td>' in body


def test_pictures_are_part_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "one.svg").write_text("<svg/>")
    body = body_of(tmp_path, {"figures/two.svg": "<svg id='drawn'/>"})
    assert '<img alt="A picture" src="data:image/svg+xml;base64,PHN2Zy8+">' in body
    assert "<svg id='drawn'/>" in body
    assert "<figure" not in body_of(tmp_path / "empty")
