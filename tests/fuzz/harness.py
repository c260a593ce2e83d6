"""Runs many mutated inputs: each must succeed, or be refused in one short line.

A fuzzer is a slow test that calls `fuzz` with a function. That function gets a seeded
generator, makes one input from it, and gives it to `run_command` or `run_callable`,
which raise `Failed` for anything but success or a proper refusal. `fuzz` tries all
inputs before it reports the failures, each with its seed. To repeat one of them, and to
try more of them than the tests do:

    FUZZ_SEED=17 python -m pytest tests/fuzz/test_yaml.py -m slow
    FUZZ_COUNT=10000 python -m pytest tests/fuzz/test_yaml.py -m slow
"""

import io
import os
import signal
import sys
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData

import tempergat
from tempergat.base import UserError
from tempergat.base.text import LONGEST_MESSAGE
from tempergat.cli import main
from tempergat.data import MASKS, ReadOptions, as_dataset, to_dense
from tests.cli.conftest import Ending

PREFIX = "tempergat: "
# How lines begin that a command may print before a refusal.
NOTE_PREFIX = "note: "
LONGEST_LINE = LONGEST_MESSAGE + len(PREFIX)
TIME_LIMIT_S = 20.0
_FAILURES_SHOWN = 20
_PACKAGE = Path(tempergat.__file__).parent
# torch warns once per process.
_TORCH_WARNINGS = (
    "Sparse invariant checks are implicitly disabled",
    "Sparse CSR tensor support is in beta state",
    "`torch.jit",
)


class Failed(Exception):
    """An input that was neither accepted nor refused properly."""


def fuzz(
    count: int, attempt: Callable[[np.random.Generator], bool], more_than: int
) -> None:
    """Makes and tries inputs; reports all that fail, with their seeds.

    Args:
        count: How many inputs, unless FUZZ_COUNT says it.
        attempt: Makes an input with a generator and tries it; returns whether it was
            accepted.
        more_than: More inputs than this must be accepted, and as many refused.
    """
    chosen = os.environ.get("FUZZ_SEED")
    count = int(os.environ.get("FUZZ_COUNT", count))
    seeds = range(count) if chosen is None else [int(chosen)]
    tally: Counter[bool] = Counter()
    failures = []
    for seed in seeds:
        try:
            tally[attempt(np.random.default_rng(seed))] += 1
        except Exception as error:
            if chosen is not None:
                raise
            failures.append(f"FUZZ_SEED={seed}: {_described(error)}")
    if failures:
        shown = "\n".join(failures[:_FAILURES_SHOWN])
        pytest.fail(f"{len(failures)} of {count} inputs failed:\n{shown}", False)
    if chosen is not None:
        pytest.skip(f"input {chosen} alone passed: {dict(tally)}")
    assert min(tally[True], tally[False]) > more_than, tally


def run_command(*arguments: object, accepted: tuple[int, ...] = (0,)) -> Ending:
    """Runs `tempergat` in this process and checks how it ends.

    Args:
        arguments: The command line.
        accepted: Exit statuses that are not a refusal; `compare` ends with 1 where
            some runs failed.

    Raises:
        Failed: It ended with a traceback, a warning, a control character in what it
            printed, several lines, a long one or another status than 1 or 2.
    """
    out, err = io.StringIO(), io.StringIO()
    before = sys.argv, signal.getsignal(signal.SIGTERM)
    sys.argv = ["tempergat", *map(str, arguments)]
    status: Any = None
    try:
        with _watched(), redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as ended:
        status = ended.code or 0
    finally:
        sys.argv = before[0]
        signal.signal(signal.SIGTERM, before[1])
    ending = Ending(status, out.getvalue(), err.getvalue())
    _refuse_control_characters(ending.out + ending.err)
    if status in accepted and not ending.err.rpartition("\n")[2].startswith(PREFIX):
        return ending
    if status not in (1, 2):
        raise Failed(f"exit status {status!r}: {ending.err[:200]!r}")
    lines = [
        line for line in ending.err.splitlines() if not line.startswith(NOTE_PREFIX)
    ]
    if len(lines) != 1 or not lines[0].startswith(PREFIX):
        raise Failed(f"not one line: {ending.err[:300]!r}")
    _refuse_long(lines[0])
    return ending


def run_callable(function: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    """Calls a function of the library; returns whether it succeeded.

    Raises:
        Failed: It raised anything but a `UserError` of one short line, or something
            other than tempergat gave a warning.
    """
    try:
        with _watched():
            function(*arguments, **named)
    except UserError as error:
        message = str(error)
        if len(message.splitlines()) != 1:
            raise Failed(f"not one line: {message[:300]!r}") from error
        _refuse_control_characters(message)
        _refuse_long(message)
        return False
    return True


def check_and_read(path: Path, rng: np.random.Generator, **options: Any) -> bool:
    """Has the command check a graph and the library read it, half with options.

    Returns:
        Whether it was read.
    """
    run_command("data", "check", path)
    chosen = ReadOptions(**options) if rng.integers(2) else ReadOptions()
    labelled = bool(rng.integers(4))
    return run_callable(read_graph, path, labelled=labelled, options=chosen)


def read_graph(path: Path, labelled: bool, options: ReadOptions) -> None:
    """Reads a graph as users do; what is read must not contradict itself.

    Raises:
        Failed: A file was changed, or the graph could not be trained on.
    """
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    before = [file.read_bytes() for file in files]
    graph = as_dataset(path, labelled=labelled, options=options)
    if [file.read_bytes() for file in files] != before:
        raise Failed("reading has changed a file")
    data = graph.data
    if isinstance(data, HeteroData) or not labelled:
        return
    parts = torch.stack([data[mask] for mask in MASKS])
    ends = data.edge_index.flatten().tolist()
    is_sound = {
        "ends of edges": all(0 <= end < data.num_nodes for end in ends),
        "labels": -1
        <= int(data.y.min())
        <= int(data.y.max())
        == graph.predicted.width - 1,
        "features": "x" not in data or to_dense(data.x).isfinite().all(),
        "parts": int(parts.sum(0).max()) <= 1 and (data.y[parts.any(0)] >= 0).all(),
        "training nodes": data.train_mask.any(),
    }
    if not all(is_sound.values()):
        raise Failed(f"what was read is not sound: {is_sound}")


class _TooSlow(BaseException):
    """Not an Exception: no handler of the code under test may take it."""


@contextmanager
def _watched() -> Iterator[None]:
    """Fails on warnings of other packages, and where the time limit passes."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, TIME_LIMIT_S)
    try:
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            yield
    except _TooSlow:
        raise Failed(f"it took over {TIME_LIMIT_S:.0f} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        spilt = [str(w.message) for w in given if not _is_expected(w)]
    if spilt:
        raise Failed(f"warning: {spilt[0][:200]!r}")


def _is_expected(warning: warnings.WarningMessage) -> bool:
    """Whether a warning is torch's single one, or a note of tempergat's own."""
    text = str(warning.message)
    is_note = warning.category is UserWarning and (
        Path(warning.filename).is_relative_to(_PACKAGE)
        or Path(warning.filename).is_relative_to(Path(__file__).parents[1])
    )
    return is_note or text.startswith(_TORCH_WARNINGS)


def _refuse_control_characters(text: str) -> None:
    for letter in text:
        if letter != "\n" and unicodedata.category(letter) in ("Cc", "Cs"):
            raise Failed(f"control character {letter!r} in {text[:300]!r}")


def _refuse_long(line: str) -> None:
    if len(line) > LONGEST_LINE:
        raise Failed(f"a line of {len(line)} letters: {line[:200]!r}")


def _described(error: Exception) -> str:
    if isinstance(error, Failed):
        return str(error)
    *_, last = traceback.extract_tb(error.__traceback__)
    place = f"{Path(last.filename).name}:{last.lineno}"
    return f"{type(error).__name__} at {place}: {str(error)[:200]!r}"
