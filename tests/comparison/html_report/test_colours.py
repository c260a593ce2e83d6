"""The report's colours can be read, also by people who see fewer colours."""

import re
from importlib import resources
from itertools import combinations

import numpy as np
import pytest

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
SEEN_WITH = {
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)
WHITE = np.array([0.9505, 1.0, 1.089])


def colours(theme: str) -> dict[str, np.ndarray]:
    """The variables of a theme, in linear RGB."""
    sheet = (
        resources.files("tempergat.comparison.html_report") / "assets" / "report.css"
    )
    light, dark = re.findall(
        r':root(?:\[data-theme="dark"\])? \{(.*?)\}', sheet.read_text(), re.DOTALL
    )
    block = light if theme == "light" else dark
    theme_colours = {}
    for name, code in re.findall(r"--([\w-]+): #([0-9a-f]{6})", block):
        value = np.array([int(code[at : at + 2], 16) / 255 for at in (0, 2, 4)])
        steep = ((value + 0.055) / 1.055) ** 2.4
        theme_colours[name] = np.where(value <= 0.04045, value / 12.92, steep)
    return theme_colours


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """WCAG's contrast ratio."""
    low, high = sorted(float(TO_XYZ[1] @ colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(colour: np.ndarray) -> np.ndarray:
    ratio = TO_XYZ @ colour.clip(0, 1) / WHITE
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_and_lines_stand_out_of_the_page(theme: str) -> None:
    theme_colours = colours(theme)
    for name in ("ink", "soft", "accent", "good", "bad"):
        assert contrast(theme_colours[name], theme_colours["paper"]) >= 4.5, name
    for number in range(6):
        assert contrast(theme_colours[f"c{number}"], theme_colours["paper"]) >= 3.0, (
            number
        )


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", SEEN_WITH)
def test_colours_of_methods_are_worse_than_best(theme: str, sight: str) -> None:
    theme_colours = colours(theme)
    seen = {
        n: lab(np.array(SEEN_WITH[sight]) @ theme_colours[f"c{n}"]) for n in range(6)
    }
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 10, (one, other)
