"""Confusion matrices in the store."""

import json
import time
from typing import Any

import numpy as np
import pytest

from tempergat.comparison.storage.rows import decode_confusion, encode_confusion
from tempergat.training import SparseCounts


def test_matrices_come_back_as_they_were_and_large_ones_take_little_room() -> None:
    rng = np.random.default_rng(0)
    for classes, nodes in ((2, 50), (7, 1000), (350, 600)):
        counts = np.zeros((classes, classes), dtype=int)
        np.add.at(counts, tuple(rng.integers(0, classes, (2, nodes))), 1)
        matrix = tuple(map(tuple, counts.tolist()))
        text = json.dumps(encode_confusion(matrix))
        assert tuple(decode_confusion(json.loads(text))) == matrix
        assert len(text) < 20 * nodes


@pytest.mark.parametrize(
    "record",
    [
        [[1, 2], [3]],
        [[1, -2], [3, 4]],
        [["a"]],
        {"classes": 2},
        {"classes": 10**9, "cells": []},
        {"classes": 2, "cells": [[0, 2, 1]]},
        {"classes": 2, "cells": [[0, 1]]},
        "no matrix",
    ],
)
def test_what_is_no_matrix_is_refused(record: Any) -> None:
    with pytest.raises(ValueError, match=r"matrix|place"):
        decode_confusion(record)


def test_rows_of_thousands_of_classes_take_milliseconds() -> None:
    counts = SparseCounts(3_514, [(true, 7, 2) for true in range(3_514)])
    began = time.process_time()
    rows = list(counts)
    assert time.process_time() - began < 0.4
    assert sum(map(sum, rows)) == 2 * 3_514
    assert rows[9][6:9] == (0, 2, 0)
