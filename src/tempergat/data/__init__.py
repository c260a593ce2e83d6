"""Datasets by name, user graphs, their splits, and controlled noise on features."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names, require_compare

if TYPE_CHECKING:
    from .block_model import csbm as csbm
    from .catalog.entries import CATALOG as CATALOG
    from .catalog.entries import Entry as Entry
    from .catalog.entries import find_entry as find_entry
    from .catalog.needs import batch_nodes as batch_nodes
    from .catalog.needs import disk_bytes as disk_bytes
    from .catalog.needs import reading_bytes as reading_bytes
    from .catalog.needs import step_bytes as step_bytes
    from .dataset import MASKS as MASKS
    from .dataset import Dataset as Dataset
    from .dataset import Target as Target
    from .dataset import node_counts as node_counts
    from .dataset import tensors as tensors
    from .description import describe as describe
    from .description import describe_reading as describe_reading
    from .description import reading_line as reading_line
    from .features import ColumnScale as ColumnScale
    from .features import density as density
    from .features import normalize_rows as normalize_rows
    from .features import scale_of as scale_of
    from .features import to_dense as to_dense
    from .fetch.download import Progress as Progress
    from .fetch.locate import availability as availability
    from .fetch.locate import data_root as data_root
    from .fetch.locate import mirror_folders as mirror_folders
    from .homophily_measures import Homophily as Homophily
    from .homophily_measures import h2_index as h2_index
    from .homophily_measures import homophily as homophily
    from .loading import GraphInput as GraphInput
    from .loading import as_dataset as as_dataset
    from .loading import load as load
    from .loading import load_splits as load_splits
    from .loading import named_entry as named_entry
    from .loading import refuse_whole_graphs as refuse_whole_graphs
    from .loading import warn_of_notes as warn_of_notes
    from .noise import gaussian as gaussian
    from .noise import missing as missing
    from .splits import DEFAULT_SPLIT as DEFAULT_SPLIT
    from .splits import DEFAULT_SPLIT_SEED as DEFAULT_SPLIT_SEED
    from .splits import make_split as make_split
    from .tables.typed_folder import is_typed_folder as is_typed_folder
    from .user.findings import Finding as Finding
    from .user.node_features import match_features as match_features
    from .user.node_features import refuse_other_columns as refuse_other_columns
    from .user.open_graph import refuse_unused_options as refuse_unused_options
    from .user.options import ReadOptions as ReadOptions
    from .user.options import option_flag as option_flag
    from .user.reading import Question as Question
    from .user.report import check_graph as check_graph
else:
    require_compare(__name__)
    __all__, __getattr__, __dir__ = lazy_names(__name__)
