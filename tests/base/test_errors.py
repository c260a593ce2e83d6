"""Errors about memory, disk space and files."""

import errno
from pathlib import Path

import pytest
import torch

from tempergat.base import (
    UserError,
    errors,
    explain_full_disk,
    explain_unreadable,
    is_out_of_memory,
    is_system_error,
)


def write_limits(group: Path, limit: str, used: int, files: int) -> None:
    (group / "memory.max").write_text(f"{limit}\n")
    (group / "memory.current").write_text(f"{used}\n")
    (group / "memory.stat").write_text(
        f"anon {used - files}\ninactive_file {files}\nactive_file 0\n"
    )


def test_the_file_cache_does_not_count_as_used_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "_CONTROL_GROUP", tmp_path)
    write_limits(tmp_path, "1000", used=990, files=900)
    assert errors.available_bytes() == 910
    errors.require_memory(900, "a matrix", "use less")
    write_limits(tmp_path, "1000", used=990, files=0)
    with pytest.raises(UserError, match="a matrix needs"):
        errors.require_memory(900, "a matrix", "use less")


def test_without_a_limit_the_memory_of_the_machine_is_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "_CONTROL_GROUP", tmp_path)
    write_limits(tmp_path, "max", used=990, files=0)
    assert errors.available_bytes() > 1000


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: 8 bytes"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("Storage size calculation overflowed with sizes=[9]"),
    ],
)
def test_out_of_memory_is_recognised_also_as_the_cause_of_another_error(
    error: Exception,
) -> None:
    assert is_out_of_memory(error)
    second = RuntimeError("capture failed")
    assert not is_out_of_memory(second)
    second.__context__ = error
    assert is_out_of_memory(second)


def test_a_full_disk_is_explained_and_other_errors_pass(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is full"), explain_full_disk(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(PermissionError), explain_full_disk(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied")


def test_only_an_error_of_the_system_makes_a_file_unreadable(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match="Permission denied"),
        explain_unreadable(tmp_path),
    ):
        raise PermissionError(errno.EACCES, "Permission denied")
    with pytest.raises(OSError, match="no such member"), explain_unreadable(tmp_path):
        raise OSError("no such member")
    assert not is_system_error(OSError(errno.EINVAL, "Invalid argument"))
