"""Every setting of a run, once: its type, default and range, and what it does.

Recipes, options of commands, `--set` and `settings=` are read from here, without torch
and pydantic, so that help comes at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from annotated_types import Interval, MinLen

SelectionRule = Literal["best_val_accuracy", "last_epoch", "best_val_loss"]
MetricName = Literal["accuracy", "micro_f1", "macro_f1", "roc_auc", "average_precision"]
Activation = Literal[
    "celu",
    "elu",
    "gelu",
    "hardswish",
    "leaky_relu",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "tanh",
]
Normalisation = Literal["batch", "graph", "instance", "layer", "pair"]


class Values(str):
    """The values of a number in words."""


# Far above what can be trained, and within the range of torch's sizes.
Epochs = Annotated[int, Interval(ge=1, le=10**6), Values("from 1 to 1,000,000")]
Layers = Annotated[int, Interval(ge=1, le=10**3), Values("from 1 to 1,000")]
Count = Annotated[int, Interval(ge=1, le=10**14), Values("of at least 1")]
# -1 for all neighbours.
Hop = Annotated[int, Interval(ge=-1, le=10**9)]
Rate = Annotated[float, Interval(ge=0, lt=1), Values("from 0 up to, but less than, 1")]
Positive = Annotated[float, Interval(gt=0, lt=math.inf), Values("above 0")]
NotNegative = Annotated[float, Interval(ge=0, lt=math.inf), Values("of at least 0")]
Temperature = Annotated[
    float, Interval(gt=0, le=10**6), Values("above 0 up to 1,000,000")
]
# A gate is fully open or shut long before it reaches these.
GateBias = Annotated[float, Interval(ge=-100, le=100), Values("from -100 to 100")]

# Of a setting that came after runs had been stored: it is written, and enters the hash,
# only where it differs from its default.
LATER = "later"


class Option(NamedTuple):
    """Commands have an option for the setting, of its own name or of a short one."""

    name: str = ""


class OfTraining:
    """Settings of the training of any module."""

    epochs: Annotated[Epochs, "Epochs; with full training, as many steps.", Option()]
    learning_rate: Annotated[
        Positive, "Learning rate; with a schedule, at the first step.", Option("lr")
    ]
    weight_decay: Annotated[NotNegative, "L2 factor in Adam's gradient; AdamW's decay."]
    decay_bias: Annotated[bool, "Whether weight decay acts on biases but the gates'."]
    normalize_features: Annotated[bool, "Whether features are divided by their sum."]
    selection: Annotated[
        SelectionRule, "Which epoch is reported: by validation or the last."
    ]
    optimizer: Annotated[Literal["adam", "adamw"], "Optimizer.", LATER] = "adam"
    schedule: Annotated[
        Literal["cosine"] | None, "cosine: the learning rate falls to 0.", LATER
    ] = None
    clip_norm: Annotated[
        Positive | None, "Largest norm of a gradient, all parameters together.", LATER
    ] = None
    training: Annotated[
        Literal["full", "sampled"],
        "full: every step sees the whole graph. sampled: a step sees a batch of nodes "
        "with some of their neighbours, for graphs too large for that.",
        Option(),
    ] = "full"
    fanout: Annotated[
        tuple[Hop, ...] | None,
        "With --training sampled: how many neighbours are drawn in each hop, at most "
        "one number per layer, like 15,10,5; -1 for all.",
        Option(),
    ] = None
    batch_size: Annotated[
        Count | None, "With --training sampled: nodes per step.", Option()
    ] = None
    eval_batch_size: Annotated[
        Count | None,
        "With --training sampled: nodes per batch of a sampled evaluation; exact "
        "scores over the whole graph when left out.",
        Option(),
    ] = None
    metric: Annotated[
        MetricName | None,
        "The score to report: accuracy, micro_f1, macro_f1, roc_auc or "
        "average_precision. With selection best_val_accuracy also the score that "
        "selects the epoch.",
        Option(),
        LATER,
    ] = None
    class_weights: Annotated[
        Literal["balanced"] | None,
        "balanced: every class has the same weight in the loss, however few nodes it "
        "has.",
        Option(),
        LATER,
    ] = None


class OfModel:
    """Settings of the built-in models."""

    hidden_channels: Annotated[
        Count, "Width of a hidden layer, all heads together.", Option("hidden")
    ]
    num_layers: Annotated[Layers, "Layers.", Option("layers")]
    feature_dropout: Annotated[
        Rate, "Dropout rate of every layer's input.", Option("dropout")
    ]
    act: Annotated[Activation | None, "Activation between layers."]
    norm: Annotated[Normalisation | None, "Normalisation between layers."]
    residual: Annotated[
        bool | Literal["gate"],
        "Whether layers add a linear map of their input; gate: a learned share of it.",
    ]
    jk: Annotated[
        Literal["last", "cat", "max"] | None,
        "How the outputs of all layers are joined.",
    ]
    shared_channels: Annotated[
        Count | None,
        "Width that all types of a typed graph are mapped to; none: hidden_channels.",
        LATER,
    ] = None


class OfAttention:
    """Settings of models with attention."""

    heads: Annotated[Count, "Attention heads of a hidden layer.", Option()] = 1
    out_heads: Annotated[Count, "Attention heads of the last layer, averaged."] = 1
    attention_dropout: Annotated[
        Rate, "Dropout rate of attention weights.", Option("dropout")
    ] = 0.0


class OfTemperature:
    """Settings of models with a temperature."""

    init_temp: Annotated[Temperature, "The temperature at the start."] = 1.0
    decay_temperature: Annotated[bool, "Whether weight decay acts on theta."] = True


class OfGate:
    """Settings of models with a gate."""

    gate_penalty: Annotated[
        NotNegative, "Factor of the sum over layers of the mean gate, in the loss."
    ] = 0.0
    gate_bias_init: Annotated[GateBias, "Bias of the gates at the start."] = 0.0
    gate_last_layer: Annotated[
        bool, "Whether the layer of the class scores has a gate, without jk.", LATER
    ] = True
    decay_gate: Annotated[bool, "Whether weight decay acts on the gates."] = True


class Settings(OfModel, OfAttention, OfTemperature, OfGate, OfTraining):
    """All settings, and what a run has beside them that nobody sets."""

    method: Annotated[str, MinLen(1), "A method, or what a user's module is called."]
    source_hash: Annotated[str | None, "Hash of a user's module.", LATER] = None
    scale_features: Annotated[
        bool, "Whether columns of numbers are scaled; the graph decides.", LATER
    ] = False
    edge_weight: Annotated[
        bool, "Whether edge weights multiply attention; the graph decides.", LATER
    ] = False
    bias_before_norm: Annotated[
        bool,
        "Whether layers before a batch norm have a bias, which makes scores depend on "
        "the seeds trained beside; only earlier runs and checkpoints have.",
        LATER,
    ] = True


# The type of each setting.
HINTS = get_type_hints(Settings, include_extras=True)
LATER_SETTINGS = [name for name, hint in HINTS.items() if LATER in get_args(hint)]
# What has each setting that users may change.
PARTS: dict[str, type] = {
    name: part for part in Settings.__bases__ for name in part.__annotations__
}
HAVING: dict[type, str] = {
    OfModel: "built-in methods, like gat",
    OfAttention: "methods with attention, like gat",
    OfTemperature: "methods with a temperature, like temp_only",
    OfGate: "methods with a gate, like gated",
    OfTraining: "all methods, your own too",
}
# The options of commands, and the fields that each sets.
OPTIONS: dict[str, tuple[str, ...]] = {}
for _field in PARTS:
    for _said in get_args(HINTS[_field]):
        if isinstance(_said, Option):
            _name = _said.name or _field
            OPTIONS[_name] = (*OPTIONS.get(_name, ()), _field)
# The names that users may give.
NAMES = {name: (name,) for name in PARTS} | OPTIONS


def help_of(name: str) -> str:
    """What a setting does."""
    said = [said for field in NAMES[name] for said in get_args(HINTS[field])]
    return " ".join(s for s in said if type(s) is str and s != LATER)


def typed_as(name: str) -> type:
    """What is typed for a setting on a command line: `int`, `float` or `str`."""
    kind = HINTS[NAMES[name][0]]
    while get_origin(kind) in (Annotated, Union, UnionType):
        kind = get_args(kind)[0]
    return kind if kind in (int, float) else str


def values_of(name: str) -> str:
    """The values of a setting: `a number above 0`, `adam or adamw`."""
    *first, last = _values(HINTS[NAMES[name][0]])
    return f"{', '.join(first)} or {last}" if first else last


def _values(hint: Any) -> Iterator[str]:
    kind, inner = get_origin(hint), get_args(hint)
    if kind is Annotated:
        noun = "a whole number" if inner[0] is int else "a number"
        words = [f"{noun} {said}" for said in inner[1:] if isinstance(said, Values)]
        yield from words or _values(inner[0])
    elif kind is Literal:
        yield from map(str, inner)
    elif kind is tuple:
        yield "how many neighbours to draw in each hop, like 15,10,5 (-1 for all)"
    elif kind in (Union, UnionType):
        for part in inner:
            yield from _values(part)
    else:
        yield from ("true", "false") if hint is bool else ("none",)
