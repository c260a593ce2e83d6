"""The colour and the shape of each method, the same in every figure of a report."""

from tempergat.comparison.html_report import svg
from tempergat.nn import METHODS

# Classes of the style sheet, one colour for each backbone.
_COLOURS = {"gcn": "c0", "gat": "c1", "gatv2": "c2"}
_OTHER_COLOURS = ("c3", "c4", "c5")
_RADIUS = 5.0


def colour_of(method: str, methods: tuple[str, ...]) -> str:
    """The class of a method's colour: its backbone's, or one for the user's methods."""
    if method in METHODS and METHODS[method].backbone in _COLOURS:
        return _COLOURS[METHODS[method].backbone]
    others = [
        name
        for name in methods
        if name not in METHODS or METHODS[name].backbone not in _COLOURS
    ]
    return _OTHER_COLOURS[others.index(method) % len(_OTHER_COLOURS)]


def mark(method: str, x: float, y: float, class_: str, words: str = "") -> str:
    """A method's mark: its shape tells temperature and gate apart.

    A circle has neither, a triangle a temperature, a square a gate, a diamond both.
    """
    inside = svg.title(words) if words else ""
    known = METHODS.get(method)
    has_temperature = known is not None and known.temperature
    has_gate = known is not None and known.gate is not None
    r = _RADIUS
    if has_temperature and has_gate:
        corners = [(x, y - r - 1), (x + r + 1, y), (x, y + r + 1), (x - r - 1, y)]
    elif has_temperature:
        corners = [(x, y - r - 1), (x + r + 1, y + r - 1), (x - r - 1, y + r - 1)]
    elif has_gate:
        s = r - 0.5
        corners = [(x - s, y - s), (x + s, y - s), (x + s, y + s), (x - s, y + s)]
    else:
        return svg.element("circle", inside, cx=x, cy=y, r=r, class_=f"mark {class_}")
    return svg.element(
        "path", inside, d=svg.path_of(corners) + "Z", class_=f"mark {class_}"
    )
