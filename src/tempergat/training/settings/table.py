"""The settings that users change: what `settings=`, options and errors are made of."""

from typing import NamedTuple


class Setting(NamedTuple):
    """A setting by the short name that users give.

    Attributes:
        type: What is typed for it on a command line.
        range: Its values in words.
        help: The help of its option; None where there is no option.
        of_model: Whether it concerns the built-in models alone.
        fields: The fields of `RunConfig` that it sets, whose types have its bounds;
            the one of its own name when empty.
    """

    type: type[int] | type[float] | type[str]
    range: str
    help: str | None = None
    of_model: bool = False
    fields: tuple[str, ...] = ()


SETTINGS = {
    "epochs": Setting(
        int,
        "a whole number from 1 to 1,000,000",
        "Epochs, in place of the recipe's.",
    ),
    "lr": Setting(
        float,
        "a number above 0, like 0.01",
        "Learning rate, in place of the recipe's.",
        fields=("learning_rate",),
    ),
    "hidden": Setting(
        int,
        "a whole number of at least 1, like 64",
        "Width of a hidden layer, all heads together, in place of the recipe's.",
        of_model=True,
        fields=("hidden_channels",),
    ),
    "heads": Setting(
        int,
        "a whole number of at least 1, like 8",
        "Attention heads, in place of the recipe's.",
        of_model=True,
    ),
    "layers": Setting(
        int,
        "a whole number from 1 to 1,000",
        "Layers, in place of the recipe's.",
        of_model=True,
        fields=("num_layers",),
    ),
    "dropout": Setting(
        float,
        "a number from 0 up to, but less than, 1",
        "Dropout rate of features and attention weights, in place of the recipe's.",
        of_model=True,
        fields=("feature_dropout", "attention_dropout"),
    ),
    "optimizer": Setting(str, "adam or adamw"),
    "schedule": Setting(str, "cosine"),
    "clip_norm": Setting(float, "a number above 0, like 1.0"),
    "training": Setting(
        str,
        "full or sampled",
        "full: every step sees the whole graph. sampled: a step sees a batch of nodes "
        "with some of their neighbours, for graphs too large for that.",
    ),
    "fanout": Setting(
        str,
        "how many neighbours to draw in each hop, like 15,10,5; -1 for all",
        "With --training sampled: how many neighbours are drawn in each hop, at most "
        "one number per layer, like 15,10,5; -1 for all.",
    ),
    "batch_size": Setting(
        int,
        "a whole number of at least 1, like 1024",
        "With --training sampled: nodes per step.",
    ),
    "eval_batch_size": Setting(
        int,
        "a whole number of at least 1, like 4096",
        "With --training sampled: nodes per batch of a sampled evaluation; exact "
        "scores over the whole graph when left out.",
    ),
}
# Arguments of their own in Python, and options like those above.
ARGUMENTS = {
    "metric": Setting(
        str,
        "the name of a metric",
        "The score to report: accuracy, micro_f1, macro_f1, roc_auc or "
        "average_precision. A recipe with best_val_accuracy also selects the epoch by "
        "it.",
    ),
    "class_weights": Setting(
        str,
        "balanced, or leave it out",
        "balanced: every class has the same weight in the loss, however few nodes it "
        "has.",
    ),
}


def fields_of(name: str) -> tuple[str, ...]:
    """The fields of `RunConfig` that a setting changes."""
    return (SETTINGS | ARGUMENTS)[name].fields or (name,)
