"""The structure `Call` of `csrc/call.h`, field by field.

A call is filled in as a list of numbers and packed at once: with ctypes' structures,
setting one field after another takes longer than attention on a small graph.
"""

import itertools
import struct

# Edges grouped by one end, see `ops/graph.py`, and a matrix of feature rows.
_ROWS = ("pointer", "other", "position", "edge_id", "count")
_FEATURES = ("data", "rows", "stride")
_PARTS: dict[str, tuple[str, ...]] = {
    "storage": (),
    "isa": (),
    "threads": (),
    "wide_index": (),
    "heads": (),
    "channels": (),
    "negative_slope": (),
    "dropout": (),
    "drop_threshold": (),
    "dropout_seed": (),
    "by_target": _ROWS,
    "by_source": _ROWS,
    "z_src": _FEATURES,
    "z_dst": _FEATURES,
    "edge": _FEATURES,
    "out": _FEATURES,
    "dout": _FEATURES,
    "dz_src": _FEATURES,
    "dz_dst": _FEATURES,
    "dedge": _FEATURES,
    "score_src": (),
    "score_dst": (),
    "edge_score": (),
    "att": (),
    "dweights": (),
    "lse": (),
    "weights": (),
    "dscore_src": (),
    "dscore_dst": (),
    "datt": (),
    "dedge_score": (),
    "edge_width": (),
    "edge_x": (),
    "edge_map": (),
    "dedge_x": (),
    "dedge_map": (),
    "records": _FEATURES,
}
_REALS = ("negative_slope", "dropout")

_lengths = [max(1, len(parts)) for parts in _PARTS.values()]
# Where a field begins; absent arguments are 0, the null pointer.
PLACE = dict(zip(_PARTS, itertools.accumulate([0, *_lengths[:-1]]), strict=True))
LENGTH = sum(_lengths)
_packer = struct.Struct(
    "="
    + "".join(
        ("d" if name in _REALS else "q") * n
        for name, n in zip(_PARTS, _lengths, strict=True)
    )
)
SIZE = _packer.size
pack = _packer.pack
