"""Settings, recipes and training: one run, or many seeds at once."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from .devices import choose_device as choose_device
    from .devices import compile_kernels as compile_kernels
    from .devices import device_name as device_name
    from .evaluate import MetricName as MetricName
    from .evaluate import constant_score as constant_score
    from .groups import check_user_module as check_user_module
    from .groups import make_loop as make_loop
    from .groups import train_group as train_group
    from .inputs import notes_on_unused_edges as notes_on_unused_edges
    from .inputs import row_transform as row_transform
    from .inputs import scaled_edges as scaled_edges
    from .layerwise import infer_layerwise as infer_layerwise
    from .loop import Loop as Loop
    from .memory import OutOfMemory as OutOfMemory
    from .memory import bytes_per_seed as bytes_per_seed
    from .memory import explain_out_of_memory as explain_out_of_memory
    from .memory import free_memory as free_memory
    from .memory import group_size as group_size
    from .memory import groups_at_once as groups_at_once
    from .memory import keep_freed_memory as keep_freed_memory
    from .models import BuildModule as BuildModule
    from .models import State as State
    from .models import seeded_weights as seeded_weights
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
    from .settings.config import SELECTION_RULES as SELECTION_RULES
    from .settings.config import RunConfig as RunConfig
    from .settings.config import settings_on as settings_on
    from .settings.overrides import METRICS as METRICS
    from .settings.overrides import Overrides as Overrides
    from .settings.overrides import make_overrides as make_overrides
    from .settings.recipes import Recipe as Recipe
    from .settings.recipes import load_recipe as load_recipe
    from .settings.recipes import metric_of_run as metric_of_run
    from .settings.recipes import recipe_for as recipe_for
    from .settings.recipes import recipe_names as recipe_names
    from .settings.table import ARGUMENTS as ARGUMENTS
    from .settings.table import SETTINGS as SETTINGS
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
    from .tasks import refuse_other_training as refuse_other_training
    from .tasks import refuse_typed as refuse_typed
    from .tasks import refuse_untrainable as refuse_untrainable
    from .user_source import callable_name as callable_name
    from .user_source import source_hash as source_hash
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
