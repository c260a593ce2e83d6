"""Settings of the documentation; `make docs` builds it."""

import sys
from pathlib import Path

from sphinx.pycode import ModuleAnalyzer

import tempergat

# For the extensions mathml and tables.
sys.path.insert(0, str(Path(__file__).parent))

project = "tempergat"
author = "The tempergat authors"
copyright = author
release = version = tempergat.__version__

extensions = [
    "mathml",
    "tables",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
# Links to #sections of a page, as GitHub makes them.
myst_heading_anchors = 3
# A line that begins with a percent sign is text, as on GitHub, and no comment.
myst_disable_syntax = ["myst_line_comment"]

autodoc_member_order = "bysource"
# Types stand with the words on each parameter.
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
# Attributes as a list, like parameters.
napoleon_use_ivar = True
napoleon_custom_sections = ["Shapes"]
# Docstrings mark code by single backticks.
default_role = "literal"

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"tempergat {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0072B2",
        "color-brand-content": "#0072B2",
    },
    "dark_css_variables": {
        "color-brand-primary": "#56B4E9",
        "color-brand-content": "#56B4E9",
    },
}
html_show_sphinx = False
html_copy_source = False

# One signature of `compare`, not one for each of its overloads.
_analyzer = ModuleAnalyzer.for_module("tempergat.comparison.api")
_analyzer.analyze()
_analyzer.overloads.clear()
