"""Datasets by name, user graphs, their splits, and controlled noise on features."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from tempergat.data.block_model import csbm
    from tempergat.data.catalog import CATALOG, Entry, find_entry
    from tempergat.data.dataset import MASKS, UNLABELLED, Dataset, node_counts, tensors
    from tempergat.data.description import describe, describe_reading, reading_line
    from tempergat.data.features import density, normalize_rows, to_dense
    from tempergat.data.fetch import Progress, availability, data_root, mirror_folders
    from tempergat.data.homophily_measures import Homophily, h2_index, homophily
    from tempergat.data.inputs import GraphInput, as_dataset, load_splits
    from tempergat.data.loading import load, named_entry, warn_of_notes
    from tempergat.data.noise import gaussian, missing
    from tempergat.data.relabel import with_labels
    from tempergat.data.scaling import ColumnScale
    from tempergat.data.splits import DEFAULT_SPLIT, DEFAULT_SPLIT_SEED, make_split
    from tempergat.data.user import (
        Finding,
        ReadOptions,
        check_graph,
        is_typed_folder,
        match_features,
        option_flag,
        refuse_other_columns,
        refuse_unused_options,
    )

__all__ = [
    "CATALOG",
    "DEFAULT_SPLIT",
    "DEFAULT_SPLIT_SEED",
    "MASKS",
    "UNLABELLED",
    "ColumnScale",
    "Dataset",
    "Entry",
    "Finding",
    "GraphInput",
    "Homophily",
    "Progress",
    "ReadOptions",
    "as_dataset",
    "availability",
    "check_graph",
    "csbm",
    "data_root",
    "density",
    "describe",
    "describe_reading",
    "find_entry",
    "gaussian",
    "h2_index",
    "homophily",
    "is_typed_folder",
    "load",
    "load_splits",
    "make_split",
    "match_features",
    "mirror_folders",
    "missing",
    "named_entry",
    "node_counts",
    "normalize_rows",
    "option_flag",
    "reading_line",
    "refuse_other_columns",
    "refuse_unused_options",
    "tensors",
    "to_dense",
    "warn_of_notes",
    "with_labels",
]

__getattr__, __dir__ = lazy_names(__name__)
