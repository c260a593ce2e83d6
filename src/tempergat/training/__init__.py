"""Settings, recipes and training: one run, or many seeds at once."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from .edge_use import notes_on_unused_edges as notes_on_unused_edges
    from .evaluate import MetricName as MetricName
    from .evaluate import constant_score as constant_score
    from .hardware.compiling import compile_kernels as compile_kernels
    from .hardware.devices import choose_device as choose_device
    from .hardware.devices import device_name as device_name
    from .hardware.grouping import bytes_per_seed as bytes_per_seed
    from .hardware.grouping import group_size as group_size
    from .hardware.grouping import groups_at_once as groups_at_once
    from .hardware.memory import OutOfMemory as OutOfMemory
    from .hardware.memory import explain_out_of_memory as explain_out_of_memory
    from .hardware.memory import free_memory as free_memory
    from .hardware.memory import keep_freed_memory as keep_freed_memory
    from .initial_weights import seeded_weights as seeded_weights
    from .preparation import Preparation as Preparation
    from .preparation import noise_on_features as noise_on_features
    from .preparation import parse_noise as parse_noise
    from .record import CLEAN as CLEAN
    from .record import NUMERICS as NUMERICS
    from .record import Condition as Condition
    from .record import LayerRecord as LayerRecord
    from .record import MatmulPrecision as MatmulPrecision
    from .record import NoiseKind as NoiseKind
    from .record import Run as Run
    from .record import Scores as Scores
    from .record import Status as Status
    from .record import canonical_json as canonical_json
    from .record import config_hash as config_hash
    from .record import numerics_of as numerics_of
    from .run import train_group as train_group
    from .sampled.layerwise import infer_layerwise as infer_layerwise
    from .sampled.loop import SampledTraining as SampledTraining
    from .seeds import SeedGroup as SeedGroup
    from .seeds import State as State
    from .settings.config import SELECTION_RULES as SELECTION_RULES
    from .settings.config import RunConfig as RunConfig
    from .settings.config import settings_on as settings_on
    from .settings.overrides import METRICS as METRICS
    from .settings.overrides import Overrides as Overrides
    from .settings.overrides import make_overrides as make_overrides
    from .settings.recipes import AttentionBlock as AttentionBlock
    from .settings.recipes import GcnBlock as GcnBlock
    from .settings.recipes import Recipe as Recipe
    from .settings.recipes import load_recipe as load_recipe
    from .settings.recipes import metric_of_run as metric_of_run
    from .settings.recipes import recipe_for as recipe_for
    from .settings.recipes import recipe_names as recipe_names
    from .single.checkpoint import CHECKPOINT_NAME as CHECKPOINT_NAME
    from .single.model import TrainedModel as TrainedModel
    from .single.pretrained import from_pretrained as from_pretrained
    from .single.pretrained import load_model as load_model
    from .single.pretrained import predict as predict
    from .single.progress import EpochLines as EpochLines
    from .single.trackers import TensorBoardTracker as TensorBoardTracker
    from .single.trackers import Tracker as Tracker
    from .single.trackers import WandbTracker as WandbTracker
    from .single.training import train as train
    from .single.training import train_single as train_single
    from .task import refuse_other_training as refuse_other_training
    from .task import refuse_typed as refuse_typed
    from .task import refuse_untrainable as refuse_untrainable
    from .task import row_transform as row_transform
    from .task import scaled_edges as scaled_edges
    from .user_methods.source import callable_name as callable_name
    from .user_methods.source import source_hash as source_hash
    from .user_methods.user_code import BuildModule as BuildModule
    from .user_methods.user_modules import check_user_module as check_user_module
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
