"""The structures of `csrc/call.h`, field by field."""

import ctypes

_POINTER, _NUMBER, _REAL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


class RowsStructure(ctypes.Structure):
    """Edges grouped by one end, see `ops/graph.py`."""

    _fields_ = (
        ("pointer", _POINTER),
        ("other", _POINTER),
        ("position", _POINTER),
        ("edge_id", _POINTER),
        ("count", _NUMBER),
    )


class FeaturesStructure(ctypes.Structure):
    """A matrix of feature rows; the stride is the distance between rows."""

    _fields_ = (("data", _POINTER), ("rows", _NUMBER), ("stride", _NUMBER))


class CallStructure(ctypes.Structure):
    """All arguments and results of a kernel; absent ones are null."""

    _fields_ = (
        ("storage", _NUMBER),
        ("isa", _NUMBER),
        ("threads", _NUMBER),
        ("wide_index", _NUMBER),
        ("heads", _NUMBER),
        ("channels", _NUMBER),
        ("negative_slope", _REAL),
        ("dropout", _REAL),
        ("drop_threshold", _NUMBER),
        ("dropout_seed", _POINTER),
        ("by_target", RowsStructure),
        ("by_source", RowsStructure),
        ("z_src", FeaturesStructure),
        ("z_dst", FeaturesStructure),
        ("edge", FeaturesStructure),
        ("out", FeaturesStructure),
        ("dout", FeaturesStructure),
        ("dz_src", FeaturesStructure),
        ("dz_dst", FeaturesStructure),
        ("dedge", FeaturesStructure),
        ("score_src", _POINTER),
        ("score_dst", _POINTER),
        ("edge_score", _POINTER),
        ("att", _POINTER),
        ("dweights", _POINTER),
        ("lse", _POINTER),
        ("weights", _POINTER),
        ("dscore_src", _POINTER),
        ("dscore_dst", _POINTER),
        ("datt", _POINTER),
        ("dedge_score", _POINTER),
        ("records", FeaturesStructure),
    )
