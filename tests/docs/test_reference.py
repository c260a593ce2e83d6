"""The API reference names everything that is public."""

import re
from pathlib import Path

import pytest

import tempergat

ROOT = Path(__file__).resolve().parents[2]
DIRECTIVE = re.compile(r"^\.\. auto\w+:: tempergat\.([\w.]+)$", re.MULTILINE)
DOCUMENTED = {
    name.rsplit(".", 1)[-1]
    for page in (ROOT / "docs" / "api").glob("*.md")
    for name in DIRECTIVE.findall(page.read_text(encoding="utf-8"))
}


@pytest.mark.parametrize("name", sorted({*tempergat.__all__} - {"__version__"}))
def test_a_public_name_is_in_the_reference(name: str) -> None:
    assert name in DOCUMENTED
