"""The pictures of docs/method.md are what their script draws."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "method_figures", DOCS / "method" / "figures.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_is_on_the_page_and_every_picture_is_drawn(
    figures: ModuleType,
) -> None:
    page = (DOCS / "method.md").read_text(encoding="utf-8")
    committed = {path.stem for path in (DOCS / "figures" / "method").glob("*.svg")}
    assert committed == {*figures.FIGURES, "node"}
    assert all(f"figures/method/{name}.svg" in page for name in committed)


def test_weights_in_the_pictures_are_a_softmax(figures: ModuleType) -> None:
    for temperature in (0.25, 1.0, 4.0):
        expected = (figures.LOGITS / temperature).softmax(0)
        assert figures.weights(temperature).allclose(expected)


@pytest.mark.slow
def test_the_same_pictures_come_out(figures: ModuleType, tmp_path: Path) -> None:
    figures.draw(tmp_path)
    # What a trained model gives may differ in the last digits on another machine.
    for name in set(figures.FIGURES) - {"training"}:
        drawn = (tmp_path / f"{name}.svg").read_bytes()
        assert drawn == (DOCS / "figures" / "method" / f"{name}.svg").read_bytes()
