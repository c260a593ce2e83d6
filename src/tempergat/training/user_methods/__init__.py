"""Methods that a user wrote: modules that are built, called, trained and recognised."""

from tempergat.training.user_methods.source import callable_name, source_hash
from tempergat.training.user_methods.user_code import (
    BuildModule,
    build_user_module,
    explain_errors,
    require_logits,
    seeded_generators,
    taken_edge_inputs,
    tensors_of,
)
from tempergat.training.user_methods.user_modules import (
    ModuleGroup,
    check_user_module,
    make_group,
)

__all__ = [
    "BuildModule",
    "ModuleGroup",
    "build_user_module",
    "callable_name",
    "check_user_module",
    "explain_errors",
    "make_group",
    "require_logits",
    "seeded_generators",
    "source_hash",
    "taken_edge_inputs",
    "tensors_of",
]
