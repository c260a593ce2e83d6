"""The options that change settings of a recipe, the same for all commands."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tempergat.cli.options.groups import with_option_group

if TYPE_CHECKING:
    from tempergat.training import Overrides

_Epochs = Annotated[
    int | None, typer.Option("--epochs", help="Epochs, in place of the recipe's.")
]
_LearningRate = Annotated[
    float | None,
    typer.Option("--lr", help="Learning rate, in place of the recipe's."),
]
_Hidden = Annotated[
    int | None,
    typer.Option(
        "--hidden",
        help="Width of a hidden layer, all heads together, in place of the recipe's.",
    ),
]
_Heads = Annotated[
    int | None,
    typer.Option("--heads", help="Attention heads, in place of the recipe's."),
]
_Layers = Annotated[
    int | None, typer.Option("--layers", help="Layers, in place of the recipe's.")
]
_Dropout = Annotated[
    float | None,
    typer.Option(
        "--dropout",
        help="Dropout rate of features and attention weights, in place of the "
        "recipe's.",
    ),
]
_Training = Annotated[
    str | None,
    typer.Option(
        "--training",
        help="full: every step sees the whole graph. sampled: a step sees a batch of "
        "nodes with some of their neighbours, for graphs too large for that.",
    ),
]
_Fanout = Annotated[
    str | None,
    typer.Option(
        "--fanout",
        help="With --training sampled: how many neighbours are drawn in each hop, at "
        "most one number per layer, like 15,10,5; -1 for all.",
    ),
]
_BatchSize = Annotated[
    int | None,
    typer.Option("--batch-size", help="With --training sampled: nodes per step."),
]
_EvalBatchSize = Annotated[
    int | None,
    typer.Option(
        "--eval-batch-size",
        help="With --training sampled: nodes per batch of a sampled evaluation; exact "
        "scores over the whole graph when left out.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="The score to report: accuracy, micro_f1, macro_f1, roc_auc or "
        "average_precision. A recipe with best_val_accuracy also selects the epoch by "
        "it.",
    ),
]
_ClassWeights = Annotated[
    str | None,
    typer.Option(
        "--class-weights",
        help="balanced: every class has the same weight in the loss, however few "
        "nodes it has.",
    ),
]


@dataclass(frozen=True)
class Settings:
    """The options as the user gave them."""

    epochs: _Epochs = None
    lr: _LearningRate = None
    hidden: _Hidden = None
    heads: _Heads = None
    layers: _Layers = None
    dropout: _Dropout = None
    training: _Training = None
    fanout: _Fanout = None
    batch_size: _BatchSize = None
    eval_batch_size: _EvalBatchSize = None
    metric: Metric = None
    class_weights: _ClassWeights = None

    def overrides(self) -> "Overrides":
        """The options as `tempergat.training` takes them.

        Raises:
            UserError: A value is out of its range.
        """
        from tempergat.training import make_overrides

        given = {name: value for name, value in vars(self).items() if value is not None}
        metric = given.pop("metric", None)
        class_weights = given.pop("class_weights", None)
        return make_overrides(given, metric, class_weights)


def with_settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options to a command, which receives them as its argument `settings`."""
    return with_option_group(command, "settings", Settings)
