"""User graphs: read from files or PyG objects, checked, and reported on."""

from tempergat.data.user.feature_report import Finding
from tempergat.data.user.loading import USER_SUFFIXES, open_user_graph
from tempergat.data.user.matching import match_features
from tempergat.data.user.options import ReadOptions, option_flag
from tempergat.data.user.report import check_graph

__all__ = [
    "USER_SUFFIXES",
    "Finding",
    "ReadOptions",
    "check_graph",
    "match_features",
    "open_user_graph",
    "option_flag",
]
