"""Finds raw files in the data root or a mirror, or downloads them."""

from tempergat.data.fetch.download import Progress
from tempergat.data.fetch.locate import (
    as_path,
    availability,
    data_root,
    lock_data,
    mirror_folders,
    obtain,
)

__all__ = [
    "Progress",
    "as_path",
    "availability",
    "data_root",
    "lock_data",
    "mirror_folders",
    "obtain",
]
