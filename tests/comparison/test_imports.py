"""What a comparison imports before its first run is trained."""

import subprocess
import sys

from tests.support.interpreted import environment_of_programs

PROGRAM = """
import sys
import torch_geometric
# PyG imports some of them itself, where they are installed.
before = set(sys.modules)
import tempergat.cli.compare, tempergat.comparison.api
slow = ("matplotlib", "scipy.stats", "pandas", "sklearn")
print(*(name for name in slow if name in set(sys.modules) - before))
"""


def test_what_only_the_report_needs_is_not_imported_before_training() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment_of_programs(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []
