"""On Windows layers run on plain PyTorch, and what writes files says what it needs.

Windows is simulated: what Python lacks there is taken away once torch is loaded, and
there is no library of kernels under the name it would have.
"""

import os
import subprocess
import sys
from pathlib import Path

_WINDOWS = """
import os, pathlib, signal, sys, warnings
import torch, torch_geometric.nn
from torch_geometric.data import Data
for name in ("fcntl", "grp", "posix", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("O_NOFOLLOW", "fchmod", "fork", "getuid", "register_at_fork", "sysconf"):
    delattr(os, name)
del signal.SIGKILL, signal.SIGHUP
pathlib.WindowsPath = pathlib.PosixPath
sys.platform, os.name = "win32", "nt"
edges = torch.randint(30, (2, 90), generator=torch.Generator().manual_seed(0))
data = Data(torch.randn(30, 8), edges, y=torch.arange(30) % 2)
"""


def _run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    # Files that are there are read without storing anything.
    kept = {k: v for k, v in os.environ.items() if k != "TEMPERGAT_MIRROR"}
    return subprocess.run(
        [sys.executable, "-c", _WINDOWS + code],
        cwd=folder,
        env={**kept, "OMP_NUM_THREADS": "1", "TEMPERGAT_DATA": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_layers_upgrade_and_sampling_run_on_plain_pytorch(tmp_path: Path) -> None:
    code = """
warnings.filterwarnings("error")
warnings.filterwarnings("ignore", "tempergat has no CPU kernels .*_cpu.dll")
from tempergat import NeighborSampler, TemperGATv2Conv, upgrade
layer = TemperGATv2Conv(8, 2, heads=2)
layer(data.x, edges).sum().backward()
assert all(weight.grad is not None for weight in layer.parameters())
model = torch_geometric.nn.GAT(8, 4, 2)
before = model(data.x, edges)
assert upgrade(model)
torch.testing.assert_close(model(data.x, edges), before)
batch = next(iter(NeighborSampler(data, [3, 2], batch_size=5)))
print(model(batch.x, batch.edge_index).shape == (len(batch.x), 4))
"""
    done = _run(code, tmp_path)
    assert done.stdout == "True\n", done.stderr


def test_what_writes_files_says_that_it_needs_wsl(tmp_path: Path) -> None:
    code = """
import tempergat
from tempergat.base import write_text
for call in (
    lambda: tempergat.compare(data, methods=["gat", "gated"], runs=2),
    lambda: tempergat.load("cora"),
    lambda: write_text(pathlib.Path("model.json"), "{}"),
):
    try:
        call()
    except tempergat.UserError as error:
        print(error)
"""
    lines = _run(code, tmp_path).stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        assert line.endswith("use the Windows Subsystem for Linux (WSL)")
    assert not list(tmp_path.rglob("model.json"))
