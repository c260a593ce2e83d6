"""Errors about splits without nodes to train on or to choose the epoch by."""

import dataclasses

import pytest
import torch

from tempergat.base.errors import UserError
from tempergat.data import Dataset, csbm
from tempergat.training import train_group
from tests.support.run_settings import config

CPU = torch.device("cpu")


def with_labels(labelled: int) -> Dataset:
    """Twenty nodes, the first of them labelled, none of them for validation."""
    graph = csbm(n=20, a=5.0, b=2.0, d=4)
    data = graph.data.clone()
    data.y[labelled:] = -1
    data.val_mask = torch.zeros(20, dtype=torch.bool)
    data.train_mask = torch.ones(20, dtype=torch.bool)
    return dataclasses.replace(graph, data=data)


def test_split_that_would_do_is_proposed_by_its_option() -> None:
    expected = (
        "csbm has no labelled validation nodes; make a split of its 20 labelled "
        "nodes with --split 60/20/20 (split= in Python)"
    )
    with pytest.raises(UserError) as caught:
        train_group(with_labels(20), config(), [0], CPU)
    assert str(caught.value) == expected


def test_split_that_would_leave_a_part_empty_is_not_proposed() -> None:
    expected = "its 3 labelled nodes are too few for --split 60/20/20, so label more"
    with pytest.raises(UserError, match=expected):
        train_group(with_labels(3), config(), [0], CPU)
