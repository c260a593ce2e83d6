"""WikiCS, from its JSON file."""

import json
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from tempergat.base import first_line
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.graphs import make_graph, symmetrize
from tempergat.data.formats.numpy_files import require_nodes, require_shape


def read_wikics(paths: dict[str, Path]) -> Data:
    """Reads WikiCS, links followed both ways. Its twenty splits share the test set."""
    (path,) = paths.values()
    try:
        content = json.loads(path.read_bytes())
        features = np.array(content["features"], dtype=np.float32)
        labels = np.array(content["labels"], dtype=np.int64)
        targets = [np.array(row, dtype=np.int64) for row in content["links"]]
        masks = {
            "train_mask": np.array(content["train_masks"], dtype=bool),
            "val_mask": np.array(content["val_masks"], dtype=bool),
            "test_mask": np.array(content["test_mask"], dtype=bool),
        }
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedFile(
            path,
            f"is not JSON with features, labels, links and masks ({first_line(error)})",
        ) from error
    num_nodes = len(labels)
    require_shape(path, "links", (len(targets),), (num_nodes,))
    source = np.repeat(np.arange(num_nodes), [len(row) for row in targets])
    target = np.concatenate([np.empty(0, np.int64), *targets])
    require_nodes(path, target, num_nodes)
    shape = masks["train_mask"].shape
    require_shape(path, "train_masks", shape[1:], (num_nodes,))
    require_shape(path, "val_masks", masks["val_mask"].shape, shape)
    require_shape(path, "test_mask", masks["test_mask"].shape, (num_nodes,))
    masks["test_mask"] = np.repeat(masks["test_mask"][None], len(masks["val_mask"]), 0)
    return make_graph(
        num_nodes,
        x=features,
        y=labels,
        edge_index=symmetrize(np.stack([source, target]), num_nodes),
        **{name: np.ascontiguousarray(mask.T) for name, mask in masks.items()},
    )
