"""Where a measurement was made: the machine, the versions and the commit."""

import csv
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch_geometric

ROOT = Path(__file__).parent.parent


def machine(device: torch.device) -> str:
    """The GPU's name, or the processor's with its cores in use."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{processor()}, {torch.get_num_threads()} of {os.cpu_count()} cores"


def processor() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def commit() -> str:
    """The commit that is checked out, with a plus sign if files differ from it.

    The variable TEMPERGAT_COMMIT names it for a copy without its history.
    """
    named = os.environ.get("TEMPERGAT_COMMIT")
    if named:
        return named
    found = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "src")
    return f"{found}+" if found and changed else found


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def origin(device: torch.device) -> dict[str, str]:
    """Columns that say where and with what the rows of a table were measured."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(device),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
    }


def add_row(path: Path, row: dict[str, Any], fields: Sequence[str]) -> None:
    """Adds a row to a file, which keeps its columns and what was measured before.

    Args:
        path: The file; made where it does not exist.
        row: The row.
        fields: The columns of a new file.
    """
    is_new = not path.is_file() or not path.stat().st_size
    if not is_new:
        with path.open(newline="") as file:
            fields = next(csv.reader(file))
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(
            file, fields, restval="", extrasaction="ignore", lineterminator="\n"
        )
        if is_new:
            writer.writeheader()
        writer.writerow(row)
