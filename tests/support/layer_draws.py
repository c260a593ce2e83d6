"""Draws layers with their options, inputs and sizes, as Python code.

A draw is the code that compares a layer of ours with PyG's layer or with the equations,
so a draw that fails can be printed and run as it is.
"""

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tempergat.nn import projection
from tempergat.ops import gpu
from tempergat.ops.cpu.edges import CHECKED_WHOLE
from tests.support.versions import PYG

_PLACES = ("alone",) * 12 + ("HeteroConv",) * 3 + ("to_hetero",) + ("upgrade",) * 2
_NAMES = {
    "gat": ("GATConv", "TemperGATConv"),
    "gatv2": ("GATv2Conv", "TemperGATv2Conv"),
    "transformer": ("TransformerConv", "TemperTransformerConv"),
}
_THEIRS, _OURS = (", ".join(names) for names in zip(*_NAMES.values(), strict=True))


class Sizes(NamedTuple):
    """How large a graph and its features are."""

    nodes: int
    edges: int
    heads: int
    channels: int
    edge_dim: int


class Code(str):
    """Code that stands for a value in the arguments of a call."""

    __repr__ = str.__str__


def draw(number: int, device: str = "cpu", check: str = "assert_same") -> str:
    """The code of a draw.

    Args:
        number: Which draw.
        device: Where the layer runs.
        check: The function of `tests.support.same_function` that compares the two.
            Only "assert_same" has models of several layers.
    """
    rng = random.Random(f"{device} {check} {number}")
    sizes = _sizes(rng, device)
    place = rng.choice(_PLACES) if check == "assert_same" else "alone"
    lines = _alone(rng, sizes, check) if place == "alone" else _typed(rng, sizes, place)
    dtype = rng.choice(("float32", "float64"))
    return "\n".join(
        (
            "import copy",
            "import torch",
            f"from torch_geometric.nn import {_THEIRS}, HeteroConv, to_hetero",
            f"from tempergat.nn import {_OURS}, upgrade",
            "from tempergat import nn as tempergat_nn",
            "from tests.support import same_function",
            "torch.manual_seed(0)",
            f'kind = {{"dtype": torch.{dtype}, "device": "{device}"}}',
            *lines,
        )
    )


def _sizes(rng: random.Random, device: str) -> Sizes:
    """Small sizes, or sizes on one side of a limit in the code."""
    if rng.random() < 0.4:
        return rng.choice(list(_at_limits(device, beyond=rng.choice((0, 1)))))
    heads, channels = rng.choice(((1, 1), (1, 5), (2, 8), (3, 4), (4, 16), (9, 3)))
    nodes = rng.choice((0, 1, 2, 7, 12, 40))
    edges = rng.choice((0, 1, 2 * nodes, 4 * nodes, 100)) if nodes else 0
    return Sizes(nodes, edges, heads, channels, rng.choice((1, 3)))


def _at_limits(device: str, beyond: int) -> Iterator[Sizes]:
    """Sizes at every limit that a device has, or one beyond it."""
    # Numbers that one thread of scores.h takes, and its blocks of nodes.
    for nodes, heads, channels in ((512, 4, 32), (512, 1, 2)):
        yield Sizes(nodes + beyond, 3 * nodes, heads, channels, 3)
    yield Sizes(30, CHECKED_WHOLE // 2 + beyond, 3, 4, 3)
    if device != "cuda":
        return
    from tempergat.ops.gpu import common, schedule, scores

    yield Sizes(2, 2 * schedule.LONGEST_OF_SMALL + beyond, 2, 8, 3)
    yield Sizes(20, schedule._SMALL + beyond, 2, 8, 3)
    yield Sizes(scores._FEW + beyond, 5, 2, 8, 3)
    yield Sizes(3, 9, 1, gpu._MOST_CHANNELS + beyond, 1)
    yield Sizes(12, 40, 2, 8, gpu._MOST_EDGE_FEATURES + beyond)
    yield Sizes(12, 40, 2, gpu._LARGEST_MAP // 16 + beyond, 16)
    yield Sizes(12, 40, common._MOST_KNOWN_HEADS + beyond, 4, 3)


def _alone(rng: random.Random, sizes: Sizes, check: str) -> Iterator[str]:
    """A layer on its own, with every form of input."""
    kind = rng.choice(list(_NAMES))
    given = rng.choice(("tensor",) * 2 + ("written", "subclass", "coo", "csr", "csc"))
    is_matrix = given in ("coo", "csr", "csc")
    options = _options(rng, sizes, kind, features=0.8 if is_matrix else 0.35)
    last = "(x, None)" if kind == "gat" else "(x, y)"
    form = rng.choice(("x", "(x, x)", "(x, y)", last))
    nodes, targets = sizes.nodes, sizes.nodes
    if form in ("(x, y)", "(x, None)"):
        targets = rng.choice((1, nodes, nodes + 5))
        if "edge_dim" in options and kind != "transformer":
            # PyG cannot fill the self-loops' features of more targets than sources.
            targets = min(targets, nodes)
        if options["flow"] == "target_to_source":
            # PyG takes the number of sources for that of targets.
            targets = nodes
    features = rng.choice((1, 6, 17, projection._WIDE - 1, projection._WIDE))
    pair = (features, features)
    if form in ("(x, y)", "(x, None)") and not options.get("share_weights"):
        pair = (features, rng.choice((features, 4)))
    in_channels: Any = rng.choice((pair, (-1, -1)))
    if pair[0] == pair[1]:
        in_channels = rng.choice((features, pair, -1, (-1, -1)))
    yield from _twins(rng, kind, in_channels, sizes, options)
    yield f"x = torch.randn({nodes}, {pair[0]}, **kind)"
    if form == "(x, y)":
        yield f"y = torch.randn({targets}, {pair[1]}, **kind)"
    edges = sizes.edges if nodes and targets else 0
    yield f"edge_index = {_edges(nodes, targets, edges)}"
    if check != "assert_same" or not edges:
        given, is_matrix = "tensor", False
    if is_matrix and options["flow"] == "source_to_target":
        # An entry of a matrix is one edge.
        yield "edge_index = torch.unique(edge_index, dim=1)"
        yield f"same_function.take_matrices(ours, '{given}', ({targets}, {nodes}))"
    arguments = [form, "edge_index"]
    if "edge_dim" in options:
        shape = f"edge_index.size(1), {sizes.edge_dim}"
        yield f"edge_attr = torch.randn({shape}, **kind)"
        arguments.append("edge_attr")
    if form == "(x, None)":
        arguments += ["None"] * (3 - len(arguments)) + [f"({nodes}, {targets})"]
    inputs = ", ".join(arguments)
    if given in ("written", "subclass"):
        held = f"same_function.held(edge_index, '{given}')"
        yield f"edge_index, edges = {held}, edge_index"
        yield f"ours({inputs})"
        yield "same_function.write(edge_index, edges)"
    if check == "assert_same" and rng.random() < 0.3:
        yield "same_function.return_weights(ours, theirs)"
    yield f"same_function.{check}(ours, theirs, {inputs})"


def _twins(
    rng: random.Random, kind: str, in_channels: Any, sizes: Sizes, options: Any
) -> Iterator[str]:
    """PyG's layer and ours, or ours with temperature and gate."""
    theirs, ours = _NAMES[kind]
    yield f"options = {options}"
    call = f"({in_channels}, {sizes.channels}, **options"
    plain = rng.random()
    if plain < 0.2:
        yield f"theirs = {theirs}{call}).to(**kind)"
        yield f"ours = tempergat_nn.{theirs}{call}).to(**kind)"
        yield "assert repr(ours) == repr(theirs)"
        return
    if plain < 0.5:
        yield f"theirs = {theirs}{call}).to(**kind)"
        new = {"temperature": None, "gate": None}
    else:
        yield "theirs = None  # the equations"
        new = _temperature_and_gate(rng)
        if kind == "transformer":
            new["qk_norm"] = rng.choice((False, True))
    yield f"ours = {ours}{call}, {_arguments(new)}).to(**kind)"


def _typed(rng: random.Random, sizes: Sizes, place: str) -> Iterator[str]:
    """Layers between two types of nodes, and within one of them."""
    theirs, ours = _NAMES[kind := rng.choice(list(_NAMES))]
    options = _options(rng, sizes, kind) | {"flow": "source_to_target"}
    options.pop("share_weights", None)
    wrapper = rng.choice(("HeteroConv", "to_hetero")) if place == "upgrade" else place
    relations = [
        ("a", "to", "a"),
        *rng.choice(([], [("a", "to", "b"), ("b", "to", "a")])),
    ]
    if kind != "transformer" and (len(relations) > 1 or wrapper == "to_hetero"):
        # PyG refuses self-loops between two types.
        options["add_self_loops"] = False
    nodes = {"a": sizes.nodes, "b": rng.choice((1, 9))}
    widths = {"a": rng.choice((1, 6)), "b": rng.choice((4, 6))}
    more = ", edge_attr" if "edge_dim" in options else ""
    lazy = wrapper == "to_hetero" or rng.random() < 0.5
    in_channels = "(-1, -1)" if lazy else "(widths[r[0]], widths[r[2]])"
    made = f"conv({in_channels}, {sizes.channels}, **options, **new)"
    yield f"options = {options}"
    yield f"relations = {relations}"
    yield f"nodes, widths = {nodes}, {widths}"
    yield "x = {t: torch.randn(nodes[t], widths[t], **kind) for t in nodes}"
    ends = {r: (nodes[r[0]], nodes[r[2]]) for r in relations}
    edges = {r: sizes.edges if min(ends[r]) else 0 for r in relations}
    parts = ", ".join(f"{r}: {_edges(*ends[r], edges[r])}" for r in relations)
    yield f"edge_index = {{{parts}}}"
    if more:
        shape = f"edge_index[r].size(1), {sizes.edge_dim}"
        yield f"edge_attr = {{r: torch.randn({shape}, **kind) for r in relations}}"
    if wrapper == "to_hetero":
        yield "class Net(torch.nn.Module):"
        yield "    def __init__(self, conv):"
        yield "        super().__init__()"
        yield "        self.conv = conv"
        yield f"    def forward(self, x, edge_index{more}):"
        yield f"        return self.conv(x, edge_index{more})"
        made = (
            f"to_hetero(Net({made}), (sorted({{r[0] for r in relations}}), relations))"
        )
    else:
        made = f"HeteroConv({{r: {made} for r in relations}})"
    yield "def model(conv, **new):"
    yield f"    return {made}.to(**kind)"
    new = _temperature_and_gate(rng)
    check = "assert_same"
    if place == "upgrade":
        check = "assert_same_after_upgrade"
        new["temperature"] = rng.choice((None, "layer", "head"))
        package = rng.choice(("", "tempergat_nn."))
        yield f"theirs = model({package}{theirs})"
        yield f"theirs(x, edge_index{more})"
        yield "ours = copy.deepcopy(theirs)"
        yield f"upgrade(ours, {_arguments(new)})"
    elif rng.random() < 0.5:
        yield f"theirs = model({theirs})"
        plain = rng.random() < 0.5
        yield (
            f"ours = model(tempergat_nn.{theirs})"
            if plain
            else (f"ours = model({ours}, temperature=None, gate=None)")
        )
    else:
        yield "theirs = None  # the equations"
        yield f"ours = model({ours}, {_arguments(new)})"
    yield f"same_function.{check}(ours, theirs, x, edge_index{more})"


def _options(
    rng: random.Random, sizes: Sizes, kind: str, features: float = 0.35
) -> dict[str, Any]:
    """What PyG's layer can be made with; mostly defaults are left out.

    Args:
        rng: Draws them.
        sizes: The sizes.
        kind: The layer.
        features: How often there are edge features.
    """
    flow = rng.choice(("source_to_target", "target_to_source"))
    options: dict[str, Any] = {"heads": sizes.heads, "flow": flow}
    others: dict[str, Any] = {
        "add_self_loops": (False,),
        "residual": (True,),
        "negative_slope": (0.0, 0.7),
    }
    if kind == "transformer":
        others = {"beta": (True,), "root_weight": (False,)}
        # Before PyG 2.7 the argument left the biases of queries, keys and values.
        others |= {"bias": (True,)} if PYG < (2, 7) else {}
    for name, values in {"concat": (False,), "bias": (False,), **others}.items():
        if rng.random() < 0.35:
            options[name] = rng.choice(values)
    if kind == "gatv2" and rng.random() < 0.35:
        options["share_weights"] = True
    if rng.random() < features:
        options["edge_dim"] = sizes.edge_dim
        if kind == "transformer":
            return options
        tensor = Code(f"torch.full(({sizes.edge_dim},), 0.3, **kind)")
        options["fill_value"] = rng.choice(("mean", "add", "max", 0.5, tensor))
    return options


def _temperature_and_gate(rng: random.Random) -> dict[str, Any]:
    return {
        "temperature": rng.choice((None, "layer", "head", 0.7)),
        "gate": rng.choice((None, "post", "first", "head")),
    }


def _arguments(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def _edges(sources: int, targets: int, count: int) -> str:
    ends = (f"torch.randint({n}, ({count},))" for n in (sources, targets))
    made = f"torch.stack([{', '.join(ends)}])"
    if count == 0:
        made = "torch.empty(2, 0, dtype=torch.long)"
    return f'{made}.to(kind["device"])'
