"""Formulas as MathML, which browsers draw themselves: no script, no network."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def visit_math(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(_mathml(node.astext()))
    raise nodes.SkipNode


def visit_displayed_math(translator: HTML5Translator, node: nodes.math_block) -> None:
    formula = _mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def _mathml(text: str, as_block: bool = False) -> str:
    # Fonts for formulas draw the bar of a concatenation as high as the line.
    mathml = tex2mathml(text, as_block=as_block)
    return mathml.replace("<mo>‖</mo>", '<mo stretchy="false">‖</mo>')


def setup(app: Sphinx) -> dict[str, bool]:
    """Makes `html_math_renderer = "mathml"` possible."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_math, None),
        block_renderers=(visit_displayed_math, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
