"""SVG figures: their elements, scales, axis ticks, and the marks of methods.

Colours are classes whose values the page's style sheet gives, so that a figure follows
the light or dark theme. The colour and the shape of a method are the same in every
figure of a report.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from tempergat.nn import METHODS

# Widths of figures on a large page and on a phone.
WIDE, NARROW = 760.0, 380.0
# Steps between ticks, times a power of ten.
_ROUND_STEPS = (1.0, 2.0, 5.0, 10.0)
# Letters of a method's name that fit beside a figure, as many as ours have at most,
# and the width for them.
_LONGEST_NAME, NAME_WIDTH = 22, 184.0
# Classes of the style sheet, one colour for each backbone.
_COLOURS = {"gcn": "c0", "gat": "c1", "gatv2": "c2", "transformer": "c5"}
_OTHER_COLOURS = ("c3", "c4", "c5")
_MARK_RADIUS = 5.0


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` to `high` onto pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.5
        return self.start + share * (self.end - self.start)


def padded(
    values: Sequence[float],
    share: float = 0.05,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[float, float]:
    """The range of values, widened by a share of itself but not beyond `within`."""
    low, high = min(values), max(values)
    room = (high - low) * share or 1.0
    return max(low - room, within[0]), min(high + room, within[1])


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round values from `low` to `high`."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in _ROUND_STEPS if s * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten from `low` to `high`, with 2 and 5 where there are few of them.

    Evenly spaced round values where even these are fewer than two.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1.0, 2.0, 5.0) if len(powers) <= 4 else (1.0,)
    values = [factor * 10.0**power for power in powers for factor in factors]
    inside = [value for value in values if low <= value <= high]
    return inside if len(inside) > 1 else ticks(low, high)


def number_text(value: float) -> str:
    """A tick's number, short: `0.25`, `80`, `1,000`, `2M`."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    if abs(value) >= 1e3:
        return f"{value:,.0f}"
    return f"{value:.4g}".replace("-", "\N{MINUS SIGN}")


def shortened(words: str, most: int) -> str:
    """The words, cut after `most` letters."""
    return words if len(words) <= most else words[: most - 1] + "…"


def shortened_id(words: str, most: int) -> str:
    """An id cut in the middle: ids that begin alike usually end differently."""
    if len(words) <= most:
        return words
    return f"{words[: most // 2]}…{words[-((most - 1) // 2) :]}"


def colour_of(method: str, methods: tuple[str, ...]) -> str:
    """The class of a method's colour: its backbone's, or one for the user's methods."""
    others = [
        name
        for name in methods
        if name not in METHODS or METHODS[name].backbone not in _COLOURS
    ]
    if method in others:
        return _OTHER_COLOURS[others.index(method) % len(_OTHER_COLOURS)]
    return _COLOURS[METHODS[method].backbone]


def path_of(points: Sequence[tuple[float, float]]) -> str:
    """The `d` of a path through points."""
    return "M" + "L".join(f"{_value(x)} {_value(y)}" for x, y in points)


class Drawing:
    """A figure that elements are added to.

    Attributes:
        parts: Its elements, as SVG.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []

    def add(
        self, tag: str, title: str = "", content: str = "", /, **attributes: object
    ) -> None:
        """Add an element.

        Args:
            tag: Its name.
            title: What the browser shows while the pointer is over it.
            content: What it contains, as SVG; text is escaped by `text`.
            attributes: Its attributes. `class_` gives `class`, an underscore inside a
                name gives a hyphen, and numbers are rounded.
        """
        written = "".join(
            f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
            for name, value in attributes.items()
        )
        if title:
            content = f"<title>{html.escape(title)}</title>{content}"
        end = f">{content}</{tag}>" if content else "/>"
        self.parts.append(f"<{tag}{written}{end}")

    def text(self, x: float, y: float, words: str, **attributes: object) -> None:
        """Words at a place."""
        self.add("text", "", html.escape(words), x=x, y=y, **attributes)

    def method_name(self, x: float, y: float, method: str) -> None:
        """A method's name that ends at a place; a long one is cut."""
        self.text(x, y, shortened(method, _LONGEST_NAME), class_="name end")

    def line(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        """A straight line."""
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)

    def mark(self, method: str, x: float, y: float, class_: str, words: str) -> None:
        """A method's mark: its shape tells temperature and gate apart.

        A circle has neither, a triangle a temperature, a square a gate, a diamond both.
        """
        known = METHODS.get(method)
        has_temperature = known is not None and known.temperature
        has_gate = known is not None and known.gate is not None
        r, look = _MARK_RADIUS, f"mark {class_}"
        if has_temperature and has_gate:
            corners = [(x, y - r - 1), (x + r + 1, y), (x, y + r + 1), (x - r - 1, y)]
        elif has_temperature:
            corners = [(x, y - r - 1), (x + r + 1, y + r - 1), (x - r - 1, y + r - 1)]
        elif has_gate:
            s = r - 0.5
            corners = [(x - s, y - s), (x + s, y - s), (x + s, y + s), (x - s, y + s)]
        else:
            self.add("circle", words, cx=x, cy=y, r=r, class_=look)
            return
        self.add("path", words, d=path_of(corners) + "Z", class_=look)

    def x_axis(
        self,
        scale: Scale,
        y: float,
        top: float,
        values: Sequence[float],
        label: str = "",
        words: Sequence[str] | None = None,
    ) -> None:
        """Vertical grid lines with their numbers or words below, and the axis' name."""
        for value, word in zip(values, words or map(number_text, values), strict=True):
            x = scale(value)
            self.line(x, top, x, y, "grid")
            self.text(x, y + 16, word, class_="tick middle")
        if label:
            middle = (scale.start + scale.end) / 2
            self.text(middle, y + 36, label, class_="label middle")

    def y_axis(
        self, scale: Scale, x: float, right: float, values: Sequence[float], label: str
    ) -> None:
        """Horizontal grid lines, numbers to the left, and the axis' name above."""
        for value in values:
            y = scale(value)
            self.line(x, y, right, y, "grid")
            self.text(x - 7, y + 4, number_text(value), class_="tick end")
        self.text(x, scale.end - 10, label, class_="label")

    def svg(self, width: float, height: float, name: str) -> str:
        """The whole figure, which scales with the page.

        Args:
            width: In pixels at full size.
            height: In pixels at full size.
            name: What the figure shows, for screen readers.
        """
        wide, high = _value(width), _value(height)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
            f'width="{wide}" height="{high}" style="--width:{wide}px" role="img" '
            f'aria-label="{html.escape(name)}">' + "".join(self.parts) + "</svg>"
        )


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return html.escape(str(value))
