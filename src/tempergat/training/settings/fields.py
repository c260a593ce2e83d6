"""Every setting of a run, once: its type, default and range, and what it does.

Recipes, options of commands, `--set` and `settings=` are read from here, without torch
and pydantic, so that help comes at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import NoneType, UnionType
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

# Far above what can be trained, and within the range of torch's sizes.
Epochs = Annotated[int, Interval(ge=1, le=10**6)]
Layers = Annotated[int, Interval(ge=1, le=10**3)]
Count = Annotated[int, Interval(ge=1, le=10**14)]
# -1 for all neighbours.
Hop = Annotated[int, Interval(ge=-1, le=10**9)]
Rate = Annotated[float, Interval(ge=0, lt=1)]
Positive = Annotated[float, Interval(gt=0, lt=math.inf)]
NotNegative = Annotated[float, Interval(ge=0, lt=math.inf)]
Temperature = Annotated[float, Interval(gt=0, le=10**6)]
# A gate is fully open or shut long before it reaches these.
GateBias = Annotated[float, Interval(ge=-100, le=100)]

# What has a setting: any module that is trained, the built-in models, or those with
# attention, a temperature or a gate. None: it is not for users to set.
Part = Literal["training", "model", "attention", "temperature", "gate"] | None
# No value is written in more words where there is hardly a limit.
_NO_LIMIT = 10**9


class Setting(NamedTuple):
    """What a setting does.

    Attributes:
        help: In words.
        part: What has the setting.
        short: A shorter name for users; two settings of one such name are set together.
        is_option: Whether commands have an option of that name.
        is_later: Whether it is written, and enters the hash, only where it differs from
            its default: runs were stored before there was this setting.
    """

    help: str
    part: Part = "training"
    short: str = ""
    is_option: bool = False
    is_later: bool = False


class Settings:
    """The settings. `RunConfig` has them as its fields."""

    method: Annotated[str, MinLen(1), Setting("A method, or a module's name.", None)]
    source_hash: Annotated[
        str | None, Setting("Hash of the code of a user's module.", None, is_later=True)
    ] = None
    epochs: Annotated[
        Epochs,
        Setting("Epochs; with full training, as many steps.", is_option=True),
    ]
    learning_rate: Annotated[
        Positive,
        Setting(
            "Learning rate, at the first step where it has a schedule.",
            short="lr",
            is_option=True,
        ),
    ]
    hidden_channels: Annotated[
        Count,
        Setting(
            "Width of a hidden layer, all heads together.",
            "model",
            short="hidden",
            is_option=True,
        ),
    ]
    heads: Annotated[
        Count, Setting("Attention heads of a hidden layer.", "attention", "", True)
    ] = 1
    num_layers: Annotated[Layers, Setting("Layers.", "model", "layers", True)]
    feature_dropout: Annotated[
        Rate, Setting("Dropout rate of every layer's input.", "model", "dropout", True)
    ]
    attention_dropout: Annotated[
        Rate,
        Setting("Dropout rate of attention weights.", "attention", "dropout", True),
    ] = 0.0
    out_heads: Annotated[
        Count,
        Setting("Attention heads of the output layer, averaged.", "attention"),
    ] = 1
    act: Annotated[Activation | None, Setting("Activation between layers.", "model")]
    norm: Annotated[
        Normalisation | None, Setting("Normalisation between layers.", "model")
    ]
    residual: Annotated[
        bool | Literal["gate"],
        Setting(
            "Whether layers add a linear map of their input; gate: a learned share of "
            "it for each node.",
            "model",
        ),
    ]
    jk: Annotated[
        Literal["last", "cat", "max"] | None,
        Setting(
            "What is made of the outputs of all layers (jumping knowledge).", "model"
        ),
    ]
    shared_channels: Annotated[
        Count | None,
        Setting(
            "Width of the space that features of all node types are mapped into; none "
            "for that of a hidden layer.",
            "model",
            is_later=True,
        ),
    ] = None
    init_temp: Annotated[
        Temperature, Setting("Temperature of attention at the start.", "temperature")
    ] = 1.0
    decay_temperature: Annotated[
        bool, Setting("Whether weight decay acts on theta.", "temperature")
    ] = True
    gate_penalty: Annotated[
        NotNegative,
        Setting("Factor of the sum over layers of the mean gate, in the loss.", "gate"),
    ] = 0.0
    gate_bias_init: Annotated[
        GateBias, Setting("Bias of the gates at the start; the paper has 0.", "gate")
    ] = 0.0
    gate_last_layer: Annotated[
        bool,
        Setting(
            "Whether the layer of the class scores has a gate; without effect with jk.",
            "gate",
            is_later=True,
        ),
    ] = True
    decay_gate: Annotated[
        bool, Setting("Whether weight decay acts on the gates.", "gate")
    ] = True
    decay_bias: Annotated[bool, Setting("Whether weight decay acts on other biases.")]
    weight_decay: Annotated[
        NotNegative,
        Setting("Factor of the L2 term in Adam's gradient; AdamW's own decay."),
    ]
    optimizer: Annotated[
        Literal["adam", "adamw"], Setting("Optimizer.", is_later=True)
    ] = "adam"
    schedule: Annotated[
        Literal["cosine"] | None,
        Setting("cosine: the learning rate falls to 0 over all steps.", is_later=True),
    ] = None
    clip_norm: Annotated[
        Positive | None,
        Setting(
            "Largest norm of the gradient of all parameters together.", is_later=True
        ),
    ] = None
    normalize_features: Annotated[
        bool, Setting("Whether each node's features are divided by their sum.")
    ]
    training: Annotated[
        Literal["full", "sampled"],
        Setting(
            "full: every step sees the whole graph. sampled: a step sees a batch of "
            "nodes with some of their neighbours, for graphs too large for that.",
            is_option=True,
        ),
    ] = "full"
    fanout: Annotated[
        tuple[Hop, ...] | None,
        Setting(
            "With sampled training: how many neighbours are drawn in each hop from the "
            "nodes of a batch, at most one number per layer, like 15,10,5; -1 for all.",
            is_option=True,
        ),
    ] = None
    batch_size: Annotated[
        Count | None,
        Setting("With sampled training: nodes per step.", is_option=True),
    ] = None
    eval_batch_size: Annotated[
        Count | None,
        Setting(
            "With sampled training: nodes per batch of a sampled evaluation; exact "
            "scores over the whole graph when left out.",
            is_option=True,
        ),
    ] = None
    selection: Annotated[
        SelectionRule,
        Setting(
            "Which epoch is reported; best_val_accuracy: that of the best validation "
            "score in the metric."
        ),
    ]
    metric: Annotated[
        MetricName | None,
        Setting(
            "The score to report; the dataset's when left out. A recipe with "
            "best_val_accuracy also selects the epoch by it.",
            is_option=True,
            is_later=True,
        ),
    ] = None
    class_weights: Annotated[
        Literal["balanced"] | None,
        Setting(
            "balanced: every class has the same weight in the loss, however few nodes "
            "it has.",
            is_option=True,
            is_later=True,
        ),
    ] = None
    scale_features: Annotated[
        bool,
        Setting(
            "Whether columns of numbers in tables are centred and divided by their "
            "deviation; the graph decides.",
            None,
            is_later=True,
        ),
    ] = False
    edge_weight: Annotated[
        bool,
        Setting(
            "Whether attention weights are multiplied by the graph's edge weights; the "
            "graph decides.",
            None,
            is_later=True,
        ),
    ] = False
    bias_before_norm: Annotated[
        bool,
        Setting(
            "Whether layers that batch norm follows have a bias, which makes scores "
            "depend on the seeds trained beside. Earlier runs and checkpoints have it.",
            None,
            is_later=True,
        ),
    ] = True


_HINTS = get_type_hints(Settings, include_extras=True)
# All fields, and those that users may set.
FIELDS: dict[str, Setting] = {
    name: next(said for said in get_args(hint) if isinstance(said, Setting))
    for name, hint in _HINTS.items()
}
SETTINGS = {name: setting for name, setting in FIELDS.items() if setting.part}
# The fields of each name that users may give.
NAMES: dict[str, tuple[str, ...]] = {name: (name,) for name in SETTINGS} | {
    short: tuple(n for n, s in SETTINGS.items() if s.short == short)
    for short in dict.fromkeys(s.short for s in SETTINGS.values() if s.short)
}
# The names that are options of commands.
OPTIONS = tuple(dict.fromkeys(s.short or n for n, s in SETTINGS.items() if s.is_option))


def help_of(name: str) -> str:
    """What the fields of a name do."""
    return " ".join(SETTINGS[field].help for field in NAMES[name])


def typed_as(name: str) -> type:
    """What is typed for a setting on a command line: `int`, `float` or `str`."""
    kinds = list(_kinds(_HINTS[NAMES[name][0]]))
    return next((k for k, _ in kinds if k in (int, float)), str)


def values_of(name: str) -> str:
    """The values of a setting: `a number above 0`, `adam or adamw`."""
    *first, last = [
        words
        for kind, interval in _kinds(_HINTS[NAMES[name][0]])
        for words in _values(kind, interval)
    ]
    return f"{', '.join(first)} or {last}" if first else last


def _kinds(hint: Any, interval: Interval | None = None) -> Iterator[tuple[Any, Any]]:
    """The types of a hint, and the interval of each."""
    inner = get_args(hint)
    if get_origin(hint) is Annotated:
        said = [s for s in inner[1:] if isinstance(s, Interval)]
        yield from _kinds(inner[0], *said)
    elif get_origin(hint) in (Union, UnionType):
        for part in inner:
            yield from _kinds(part)
    else:
        yield hint, interval


def _values(kind: Any, interval: Interval | None) -> list[str]:
    if kind is NoneType:
        return ["none"]
    if kind is bool:
        return ["true", "false"]
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    if get_origin(kind) is tuple:
        return ["how many neighbours to draw in each hop, like 15,10,5 (-1 for all)"]
    assert interval is not None
    noun = "a whole number" if kind is int else "a number"
    low: Any = interval.gt if interval.ge is None else interval.ge
    high: Any = interval.lt if interval.le is None else interval.le
    is_limited = high < _NO_LIMIT
    if interval.ge is None:
        start = f"above {low:,}"
    else:
        start = f"{'from' if is_limited else 'of at least'} {low:,}"
    if not is_limited:
        return [f"{noun} {start}"]
    end = f"to {high:,}" if interval.lt is None else f"up to, but less than, {high:,}"
    return [f"{noun} {start} {end}"]
