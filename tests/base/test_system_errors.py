"""How much memory is left inside a control group."""

from pathlib import Path

import pytest

from tempergat.base import system_errors as resources
from tempergat.base.errors import UserError


def limited(group: Path, limit: str, used: int, files: int) -> None:
    (group / "memory.max").write_text(f"{limit}\n")
    (group / "memory.current").write_text(f"{used}\n")
    (group / "memory.stat").write_text(
        f"anon {used - files}\ninactive_file {files}\nactive_file 0\n"
    )


def test_files_kept_in_memory_do_not_count_as_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "_CONTROL_GROUP", tmp_path)
    limited(tmp_path, "1000", used=990, files=900)
    assert resources.available_bytes() == 910
    resources.require_memory(900, "a matrix", "use less")
    limited(tmp_path, "1000", used=990, files=0)
    with pytest.raises(UserError, match="a matrix needs"):
        resources.require_memory(900, "a matrix", "use less")


def test_group_without_a_limit_leaves_what_the_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "_CONTROL_GROUP", tmp_path)
    limited(tmp_path, "max", used=990, files=0)
    assert resources.available_bytes() > 1000
