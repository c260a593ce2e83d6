"""Settings, recipes and training: one run, or many seeds at once."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names, require_compare

if TYPE_CHECKING:
    from .devices.choice import choose_device as choose_device
    from .devices.choice import compile_kernels as compile_kernels
    from .devices.choice import device_name as device_name
    from .devices.memory import OutOfMemory as OutOfMemory
    from .devices.memory import bytes_per_seed as bytes_per_seed
    from .devices.memory import explain_out_of_memory as explain_out_of_memory
    from .devices.memory import free_memory as free_memory
    from .devices.memory import group_size as group_size
    from .devices.memory import groups_at_once as groups_at_once
    from .devices.memory import keep_freed_memory as keep_freed_memory
    from .graphs.inputs import notes_on_unused_edges as notes_on_unused_edges
    from .graphs.inputs import row_transform as row_transform
    from .graphs.inputs import scaled_edges as scaled_edges
    from .graphs.layerwise import infer_layerwise as infer_layerwise
    from .groups import check_user_module as check_user_module
    from .groups import make_loop as make_loop
    from .groups import train_group as train_group
    from .loop import Loop as Loop
    from .metrics import METRICS as METRICS
    from .metrics import Metric as Metric
    from .metrics import metric_of_settings as metric_of_settings
    from .preparation import Preparation as Preparation
    from .preparation import noise_on_features as noise_on_features
    from .preparation import parse_noise as parse_noise
    from .record import CLEAN as CLEAN
    from .record import NUMERICS as NUMERICS
    from .record import Condition as Condition
    from .record import LayerRecord as LayerRecord
    from .record import NoiseKind as NoiseKind
    from .record import Run as Run
    from .record import Scores as Scores
    from .record import SparseCounts as SparseCounts
    from .record import canonical_json as canonical_json
    from .record import config_hash as config_hash
    from .record import confusion_as_json as confusion_as_json
    from .record import confusion_rows as confusion_rows
    from .record import numerics_of as numerics_of
    from .runs.models import State as State
    from .runs.models import seeded_weights as seeded_weights
    from .runs.user_modules import BuildModule as BuildModule
    from .runs.user_modules import callable_name as callable_name
    from .runs.user_modules import source_hash as source_hash
    from .settings.config import SELECTION_RULES as SELECTION_RULES
    from .settings.config import RunConfig as RunConfig
    from .settings.config import has_setting as has_setting
    from .settings.config import settings_on as settings_on
    from .settings.fields import HAVING as HAVING
    from .settings.fields import NAMES as NAMES
    from .settings.fields import OPTIONS as OPTIONS
    from .settings.fields import PARTS as PARTS
    from .settings.fields import help_of as help_of
    from .settings.fields import typed_as as typed_as
    from .settings.fields import values_of as values_of
    from .settings.overrides import Overrides as Overrides
    from .settings.overrides import make_overrides as make_overrides
    from .settings.recipe_files import recipe_names as recipe_names
    from .settings.recipe_files import recipe_text as recipe_text
    from .settings.recipes import Recipe as Recipe
    from .settings.recipes import load_recipe as load_recipe
    from .settings.recipes import metric_of_run as metric_of_run
    from .settings.recipes import recipe_for as recipe_for
    from .single.checkpoint import CHECKPOINT_NAME as CHECKPOINT_NAME
    from .single.loading import load_model as load_model
    from .single.loading import predict as predict
    from .single.model import TrainedModel as TrainedModel
    from .single.progress import EpochLines as EpochLines
    from .single.progress import TensorBoardTracker as TensorBoardTracker
    from .single.progress import Tracker as Tracker
    from .single.progress import WandbTracker as WandbTracker
    from .single.training import train as train
    from .tasks import refuse_other_training as refuse_other_training
    from .tasks import refuse_untrainable as refuse_untrainable
else:
    require_compare(__name__)
    __all__, __getattr__, __dir__ = lazy_names(__name__)
