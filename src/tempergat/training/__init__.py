"""Settings, recipes and training: one run, or many seeds at once."""

from tempergat.training.config import SELECTION_RULES, RunConfig
from tempergat.training.edge_use import notes_on_unused_edges
from tempergat.training.evaluate import MetricName
from tempergat.training.hardware import (
    OutOfMemory,
    bytes_per_seed,
    choose_device,
    compile_kernels,
    device_name,
    explain_out_of_memory,
    free_memory,
    group_size,
    groups_at_once,
)
from tempergat.training.initial_weights import seeded_weights
from tempergat.training.overrides import METRICS, Overrides, make_overrides
from tempergat.training.recipes import (
    AttentionBlock,
    GcnBlock,
    Recipe,
    load_recipe,
    recipe_for,
    recipe_names,
)
from tempergat.training.record import (
    CLEAN,
    NUMERICS,
    Condition,
    LayerRecord,
    MatmulPrecision,
    NoiseKind,
    Run,
    Scores,
    Status,
    canonical_json,
    config_hash,
    numerics_of,
)
from tempergat.training.run import FeatureNoise, train_group
from tempergat.training.sampled import SampledTraining, infer_layerwise
from tempergat.training.seeds import SeedGroup, State
from tempergat.training.single import (
    CHECKPOINT_NAME,
    TensorBoardTracker,
    Tracker,
    TrainedModel,
    WandbTracker,
    load_model,
    predict,
    train,
    train_single,
)
from tempergat.training.single.progress import EpochLines
from tempergat.training.source import callable_name, source_hash
from tempergat.training.task import (
    refuse_other_training,
    refuse_typed,
    refuse_untrainable,
)
from tempergat.training.user_code import BuildModule
from tempergat.training.user_modules import check_user_module

__all__ = [
    "CHECKPOINT_NAME",
    "CLEAN",
    "METRICS",
    "NUMERICS",
    "SELECTION_RULES",
    "AttentionBlock",
    "BuildModule",
    "Condition",
    "EpochLines",
    "FeatureNoise",
    "GcnBlock",
    "LayerRecord",
    "MatmulPrecision",
    "MetricName",
    "NoiseKind",
    "OutOfMemory",
    "Overrides",
    "Recipe",
    "Run",
    "RunConfig",
    "SampledTraining",
    "Scores",
    "SeedGroup",
    "State",
    "Status",
    "TensorBoardTracker",
    "Tracker",
    "TrainedModel",
    "WandbTracker",
    "bytes_per_seed",
    "callable_name",
    "canonical_json",
    "check_user_module",
    "choose_device",
    "compile_kernels",
    "config_hash",
    "device_name",
    "explain_out_of_memory",
    "free_memory",
    "group_size",
    "groups_at_once",
    "infer_layerwise",
    "load_model",
    "load_recipe",
    "make_overrides",
    "notes_on_unused_edges",
    "numerics_of",
    "predict",
    "recipe_for",
    "recipe_names",
    "refuse_other_training",
    "refuse_typed",
    "refuse_untrainable",
    "seeded_weights",
    "source_hash",
    "train",
    "train_group",
    "train_single",
]
