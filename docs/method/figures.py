"""Draws the pictures of docs/method.md, with the library's own attention.

python docs/method/figures.py        writes docs/figures/method/*.svg
"""

import re
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from tempergat import Graph, draw_node, ops
from tempergat.base.figures import COLOURS, new_figure, style
from tempergat.data import csbm
from tempergat.nn import TemperGATConv, build_model

ORANGE, SKY, RED, BLUE, BLACK = COLOURS
GREY, PALE = "#666666", "#EEF3F7"
FOLDER = Path(__file__).resolve().parents[1] / "figures" / "method"
LOGITS = torch.tensor([2.0, 1.2, 0.6, 0.0, -0.6, -1.2])
# The gate of a new layer.
OPEN = torch.sigmoid(torch.tensor(2.0)).item()


def weights(temperature: float) -> torch.Tensor:
    """The attention weights of one node's six neighbours."""
    count = len(LOGITS)
    edges = torch.stack([torch.arange(count), torch.zeros(count, dtype=torch.long)])
    graph = Graph(edges, (count, 1))
    values = torch.ones(count, 1, 1)
    # A slope of 1 makes LeakyReLU the identity: the scores of edges are the logits.
    scores = (LOGITS / temperature).unsqueeze(1)
    _, alpha = ops.gat(
        graph,
        values,
        torch.zeros(1, 1),
        edge_score=scores,
        negative_slope=1.0,
        return_weights=True,
    )
    return alpha.squeeze(1)


def softmax_figure() -> Figure:
    """The same six logits at three temperatures."""
    figure = new_figure(6.4, 2.5)
    axes = figure.subplots(1, 3, sharey=True)
    colours = (RED, GREY, BLUE)
    titles = ("T = 0.25: sharp", "T = 1: plain attention", "T = 4: flat")
    for ax, temperature, colour, title in zip(
        axes, (0.25, 1.0, 4.0), colours, titles, strict=True
    ):
        alpha = weights(temperature).tolist()
        ax.bar(range(len(alpha)), alpha, color=colour, width=0.75)
        for place, value in enumerate(alpha):
            ax.text(place, value + 0.02, f"{value:.2f}", ha="center", fontsize=7)
        ax.set_title(title)
        ax.set_xticks(range(len(alpha)), [f"{logit:g}" for logit in LOGITS.tolist()])
        ax.set_xlabel("logit of the neighbour")
        ax.set_ylim(0, 1.1)
    axes[0].set_ylabel("attention weight")
    return figure


def neighbours_figure() -> Figure:
    """How many neighbours share the attention, against the temperature."""
    figure = new_figure(6.4, 2.5)
    ax = figure.subplots()
    temperatures = torch.logspace(-1, 1, 81).tolist()
    counted = []
    for temperature in temperatures:
        alpha = weights(temperature)
        counted.append(float(torch.special.entr(alpha).sum().exp()))
    ax.plot(temperatures, counted, color=BLUE)
    ax.axhline(len(LOGITS), color=GREY, linewidth=0.8, linestyle=":")
    ax.text(0.1, len(LOGITS) - 0.1, "all six, equally", va="top", color=GREY)
    ax.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    ax.text(10, 1.1, "only the largest logit", ha="right", color=GREY)
    ax.set_xscale("log")
    ax.set_xticks([0.1, 0.25, 1, 4, 10], ["0.1", "0.25", "1", "4", "10"])
    ax.minorticks_off()
    ax.set_xlabel("temperature T")
    ax.set_ylabel("neighbours that count")
    ax.set_ylim(0.7, len(LOGITS) + 0.3)
    return figure


def gate_figure() -> Figure:
    """Eight features, their gate and their product."""
    features = torch.tensor([1.4, -0.9, 0.3, 1.0, -1.5, 0.7, -0.4, 1.2])
    gate = torch.sigmoid(torch.tensor([3.0, 2.0, -3.0, 0.0, -2.5, 2.5, -3.0, 1.0]))
    figure = new_figure(6.4, 2.2)
    axes = figure.subplots(1, 3)
    parts = (
        ("features z", features, BLUE),
        ("gate g = sigmoid(...)", gate, ORANGE),
        ("gated features z · g", features * gate, BLUE),
    )
    for ax, (title, values, colour) in zip(axes, parts, strict=True):
        ax.bar(range(len(values)), values.tolist(), color=colour, width=0.75)
        ax.axhline(0, color=BLACK, linewidth=0.6)
        ax.set_title(title)
        ax.set_xticks([])
        ax.set_ylim(-1.7, 1.7)
        ax.set_xlabel("feature")
    axes[1].set_ylim(0, 1.05)
    return figure


BOX_HEIGHT = 0.76


def box(ax: Axes, x: float, y: float, width: float, text: str, colour: str) -> None:
    """A labelled box around (x, y)."""
    ax.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - BOX_HEIGHT / 2),
            width,
            BOX_HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.12",
            facecolor=colour,
            edgecolor=GREY,
            linewidth=0.8,
        )
    )
    ax.text(x, y, text, ha="center", va="center", fontsize=8.5)


def arrow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], curve: float = 0.0
) -> None:
    """An arrow between two points."""
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=9,
            color=GREY,
            linewidth=1.0,
            shrinkA=0,
            shrinkB=0,
            connectionstyle=f"arc3,rad={curve}",
        )
    )


def places_figure() -> Figure:
    """Where temperature and gate act in a layer."""
    figure = new_figure(6.8, 3.8)
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set_xlim(-0.5, 10.4)
    ax.set_ylim(-0.6, 7.6)
    rows = (
        (6.4, "no gate", None),
        (4.3, 'gate="post"', "post"),
        (1.0, 'gate="first"', "first"),
    )
    for y, name, gate in rows:
        ax.text(-0.5, y + 0.55, name, fontsize=9.5, family="monospace", va="bottom")
        box(ax, 0.2, y, 1.0, "x", "white")
        box(ax, 2.1, y, 1.4, "z = W x", PALE)
        box(ax, 5.4, y, 2.4, "softmax(logits / T)\nweighted sum", "#CFE3F2")
        box(ax, 9.7, y, 1.2, "output", "white")
        arrow(ax, (0.7, y), (1.4, y))
        if gate == "first":
            box(ax, 3.5, y, 0.6, "· g", ORANGE)
            arrow(ax, (2.8, y), (3.2, y))
            arrow(ax, (3.8, y), (4.2, y))
        else:
            arrow(ax, (2.8, y), (4.2, y))
        if gate == "post":
            box(ax, 7.9, y, 0.6, "· g", ORANGE)
            arrow(ax, (6.6, y), (7.6, y))
            arrow(ax, (8.2, y), (9.1, y))
        else:
            arrow(ax, (6.6, y), (9.1, y))
        if gate is not None:
            below = y - 1.15
            end = 3.5 if gate == "first" else 7.9
            box(ax, 2.1, below, 2.7, "g = sigmoid(W' x + b)", "#F8DFA8")
            arrow(ax, (0.2, y - BOX_HEIGHT / 2), (0.75, below), 0.25)
            arrow(ax, (3.45, below), (end, y - BOX_HEIGHT / 2), 0.25)
    return figure


def training_figure() -> Figure:
    """Temperature and mean gate of two layers while they learn."""
    figure = new_figure(6.4, 2.6)
    axes = figure.subplots(1, 2)
    temperatures, gates = learned_values()
    for ax, values, title in zip(
        axes, (temperatures, gates), ("temperature T", "mean gate"), strict=True
    ):
        ax.plot(values[:, 0].tolist(), color=BLUE, label="layer 1")
        ax.plot(values[:, 1].tolist(), color=RED, linestyle="--", label="layer 2")
        ax.set_title(title)
        ax.set_xlabel("epoch")
    axes[0].axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    axes[1].axhline(OPEN, color=GREY, linewidth=0.8, linestyle=":")
    axes[0].legend()
    return figure


def learned_values() -> tuple[torch.Tensor, torch.Tensor]:
    """Temperature and mean gate of each layer after every epoch, [epochs, layers]."""
    data = csbm(seed=0).data
    torch.manual_seed(0)
    first = TemperGATConv(data.num_features, 8, heads=4)
    second = TemperGATConv(32, 2)
    parameters = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.01, weight_decay=5e-4)
    temperatures, gates = [], []
    for _ in range(200):
        optimizer.zero_grad()
        hidden = F.elu(first(data.x, data.edge_index))
        out = second(hidden, data.edge_index)
        F.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
        with torch.no_grad():
            temperatures.append([float(first.temperature), float(second.temperature)])
            inputs = ((first, data.x), (second, hidden))
            gates.append([float(layer.gate_values(x).mean()) for layer, x in inputs])
    return torch.tensor(temperatures), torch.tensor(gates)


FIGURES = {
    "softmax": softmax_figure,
    "neighbours": neighbours_figure,
    "gate": gate_figure,
    "places": places_figure,
    "training": training_figure,
}


def node_svg() -> str:
    """A node of a trained model with its neighbours."""
    data = csbm(n=400, seed=0).data
    torch.manual_seed(0)
    model = build_model("temp_gated", data.num_features, 32, 2, heads=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        F.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    svg = draw_node(model, data, 7, layer=0).svg
    # The page has a white ground for pictures in both themes.
    return re.sub(r"@media \(prefers-color-scheme:dark\)\{.*?\}\}", "", svg)


def draw(folder: Path) -> None:
    """Writes every picture as SVG; the same numbers give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FIGURES.items():
        with style():
            figure = make()
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    (folder / "node.svg").write_text(node_svg() + "\n", encoding="utf-8")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
