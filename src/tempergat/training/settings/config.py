"""The settings of a run."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from tempergat.base import suggest_one_of, validated
from tempergat.data import Dataset
from tempergat.nn import BACKBONES, METHODS
from tempergat.training.evaluate import MetricName

SelectionRule = Literal["best_val_accuracy", "last_epoch", "best_val_loss"]
SELECTION_RULES: tuple[SelectionRule, ...] = get_args(SelectionRule)

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
Epochs = Annotated[int, Field(gt=0, le=10**6)]
Layers = Annotated[int, Field(gt=0, le=10**3)]
Count = Annotated[int, Field(gt=0, le=10**14)]
# -1 for all neighbours.
Hop = Annotated[int, Field(ge=-1, le=10**9)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Temperature = Annotated[float, Field(gt=0.0, le=1e6)]
# A gate is fully open or shut long before it reaches these.
GateBias = Annotated[float, Field(ge=-100.0, le=100.0)]

# Settings that are written, and enter the hash, only where they differ from these.
_LATER_SETTINGS = {
    "source_hash": None,
    "metric": None,
    "class_weights": None,
    "shared_channels": None,
    "optimizer": "adam",
    "schedule": None,
    "clip_norm": None,
    "gate_last_layer": True,
    "scale_features": False,
    "edge_weight": False,
    "bias_before_norm": True,
}


class FrozenSettings(BaseModel):
    """Settings that cannot be changed, and take no unknown names."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MethodSettings(FrozenSettings):
    """Settings that every method has."""

    epochs: Epochs
    num_layers: Layers
    act: Activation | None
    norm: Normalisation | None
    residual: bool | Literal["gate"]
    jk: Literal["last", "cat", "max"] | None
    feature_dropout: Rate
    learning_rate: Positive
    weight_decay: NotNegative
    decay_bias: bool
    normalize_features: bool
    selection: SelectionRule
    optimizer: Literal["adam", "adamw"] = "adam"
    schedule: Literal["cosine"] | None = None
    clip_norm: Positive | None = None
    fanout: tuple[Hop, ...] | None = None
    batch_size: Count | None = None
    eval_batch_size: Count | None = None
    shared_channels: Count | None = None

    @field_validator("fanout", mode="before")
    @classmethod
    def _list_to_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value


class RunConfig(MethodSettings):
    """Everything that determines a method's runs, except the seed.

    Attributes:
        method: A key of ``METHODS``, or the name of a user's own module.
        source_hash: Hash of the source code of a user's own module; None for the
            built-in methods, whose settings are then written without it.
        training: Whether a step sees the whole graph or sampled neighbourhoods.
        epochs: Number of epochs; with full training, of steps.
        num_layers: Number of layers.
        heads: Attention heads of a hidden layer.
        hidden_channels: Total width of a hidden layer, all heads together.
        out_heads: Attention heads of the output layer, averaged.
        act: Activation between layers.
        norm: Normalisation between layers.
        residual: Whether layers add a linear map of their input; "gate" for a learned
            share of it for each node.
        jk: Jumping-knowledge mode.
        feature_dropout: Dropout rate on the input of every layer.
        attention_dropout: Dropout rate on the attention weights.
        learning_rate: The learning rate, at the first step where it has a schedule.
        weight_decay: Factor of the L2 term in Adam's gradient; with AdamW, the decay
            that the learning rate multiplies, apart from the gradient.
        decay_temperature: Whether the temperatures' theta is decayed.
        decay_gate: Whether the gates' weights and biases are decayed.
        decay_bias: Whether all other biases are decayed.
        gate_penalty: Factor of the sum over layers of the mean gate, in the loss.
        init_temp: Initial value of the temperatures.
        gate_bias_init: Initial value of the gates' biases, here the paper's.
        gate_last_layer: Whether the layer that gives the class scores has a gate too,
            in gated methods; without effect where `jk` is set.
        normalize_features: Whether each node's features are divided by their sum.
        scale_features: Whether the columns of numbers of the graph's tables are centred
            and divided by their deviation; `settings_on` decides that from the graph.
        edge_weight: Whether attention weights are multiplied by the graph's edge
            weights; `settings_on` decides that from the graph.
        bias_before_norm: Whether layers that batch norm follows have a bias, which
            makes scores depend on the seeds trained beside; `settings_on` leaves it
            out. Earlier runs and checkpoints have it.
        selection: The rule that chooses the epoch to report; `best_val_accuracy`
            takes the epoch of best validation score in the run's metric.
        metric: The metric of the scores; None for accuracy, or micro-F1 on reddit.
        class_weights: "balanced" weighs the classes in the training and the
            validation loss as scikit-learn does, so that all training nodes of a class
            together count as much as those of any other; None weighs nodes equally.
        optimizer: `adam`, or `adamw`, whose weight decay is decoupled.
        schedule: How the learning rate changes: `cosine` falls from `learning_rate`
            to 0 along half a period over all steps of the run; None keeps it.
        clip_norm: The largest norm of a run's gradient, all parameters together; a
            longer one is scaled down to it. None for no limit.
        fanout: For sampled training: how many neighbours of a node are drawn, hop by
            hop from the nodes of a batch outwards; -1 for all. At most one number per
            layer. With fewer, the first layers have only the edges drawn until then.
        batch_size: For sampled training: nodes per step.
        eval_batch_size: For sampled training: nodes per batch where evaluation is
            sampled too; None for exact scores, layer by layer over the whole graph.
        shared_channels: Width of the space that the features of all node types are
            mapped into, for typed graphs; None for `hidden_channels`.
    """

    method: Annotated[str, Field(min_length=1)]
    source_hash: str | None = None
    training: Literal["full", "sampled"] = "full"
    heads: Count = 1
    hidden_channels: Count
    out_heads: Count = 1
    attention_dropout: Rate = 0.0
    decay_temperature: bool = True
    decay_gate: bool = True
    gate_penalty: NotNegative = 0.0
    init_temp: Temperature = 1.0
    gate_bias_init: GateBias = 0.0
    gate_last_layer: bool = True
    metric: MetricName | None = None
    class_weights: Literal["balanced"] | None = None
    scale_features: bool = False
    edge_weight: bool = False
    bias_before_norm: bool = True

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        known = self.method in METHODS
        if self.source_hash is None and not known:
            raise ValueError(
                f"unknown method {self.method!r}; "
                f"{suggest_one_of(self.method, METHODS)}"
            )
        if self.source_hash is not None and known:
            raise ValueError(f"{self.method!r} is a built-in method; rename yours")
        if self.hidden_channels % self.heads:
            raise ValueError(
                f"hidden_channels={self.hidden_channels} is the total width of a layer "
                f"and must be divisible by heads={self.heads}"
            )
        if self.training != "sampled":
            return self
        if self.fanout is None or self.batch_size is None:
            raise ValueError(
                "training: sampled needs fanout and batch_size, like fanout: [15, 10] "
                "and batch_size: 1024"
            )
        if not self.fanout or 0 in self.fanout:
            raise ValueError(
                f"fanout is {list(self.fanout)}; give how many neighbours to draw in "
                "each hop, -1 for all"
            )
        if len(self.fanout) > self.num_layers and self.source_hash is None:
            raise ValueError(
                f"fanout {list(self.fanout)} has {len(self.fanout)} hops, but a model "
                f"of {self.num_layers} layers reaches no further than as many; give at "
                f"most {self.num_layers} numbers"
            )
        return self

    def model_arguments(self) -> dict[str, Any]:
        """Arguments of `build_model`, except the numbers of features and classes."""
        return {
            "method": self.method,
            "hidden_channels": self.hidden_channels,
            "num_layers": self.num_layers,
            "heads": self.heads,
            "out_heads": self.out_heads,
            "dropout": self.feature_dropout,
            "attention_dropout": self.attention_dropout,
            "act": self.act,
            "norm": self.norm,
            "jk": self.jk,
            "residual": self.residual,
            "init_temp": self.init_temp,
            "gate_bias_init": self.gate_bias_init,
            "gate_last_layer": self.gate_last_layer,
            "bias_before_norm": self.bias_before_norm,
        }

    @model_serializer(mode="wrap")
    def _without_later_settings(
        self, serialize: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        # Hashes of settings written before there were these fields must stay the same.
        values: dict[str, Any] = serialize(self)
        for name, before in _LATER_SETTINGS.items():
            if values.get(name) == before:
                values.pop(name, None)
        return values

    def with_changes(self, **changes: Any) -> RunConfig:
        """A copy with some settings changed, validated again.

        Raises:
            UserError: A setting is unknown or out of its range.
        """
        values = {**self.model_dump(), **changes}
        return validated(RunConfig, values, "settings")


def settings_on(config: RunConfig, graph: Dataset) -> RunConfig:
    """The settings of runs on a graph, once it is read.

    Columns of numbers in tables are scaled, unless the settings divide each node's
    features by their sum. Attention takes the weights of edges, if there are any.
    No layer that batch norm follows has a bias.
    """
    changes = {}
    has_bias = config.norm != "batch" or config.source_hash is not None
    if config.bias_before_norm != has_bias:
        changes["bias_before_norm"] = has_bias
    if graph.scaling and not config.normalize_features:
        changes["scale_features"] = True
    method = METHODS.get(config.method)
    if graph.edge_weight_name is not None and method is not None:
        changes["edge_weight"] = BACKBONES[method.backbone].has_attention
    return config.with_changes(**changes) if changes else config
