"""User graphs: read from files or PyG objects, checked, and reported on."""

from tempergat.data.user.feature_report import Finding
from tempergat.data.user.loading import (
    USER_SUFFIXES,
    open_user_graph,
    refuse_unused_options,
)
from tempergat.data.user.matching import match_features, refuse_other_columns
from tempergat.data.user.options import ReadOptions, option_flag
from tempergat.data.user.report import check_graph
from tempergat.data.user.tables.typed_folder import is_typed_folder

__all__ = [
    "USER_SUFFIXES",
    "Finding",
    "ReadOptions",
    "check_graph",
    "is_typed_folder",
    "match_features",
    "open_user_graph",
    "option_flag",
    "refuse_other_columns",
    "refuse_unused_options",
]
