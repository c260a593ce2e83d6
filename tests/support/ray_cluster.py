"""A Ray cluster of two nodes on this machine, each with its own processes.

Run as a script, it prints the cluster's address. When it reads `second` or `head`, it
waits until that node trains, and kills it. It ends when its input ends.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OBJECT_STORE_BYTES = 100 * 2**20
# A dead node is noticed within about a second; the default is half a minute.
QUICK_CHECKS = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 300,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}


class RayCluster:
    """The cluster, as a test sees it."""

    def __init__(self, process: "subprocess.Popen[str]", address: str) -> None:
        self._process = process
        self.address = address

    def kill_while_it_trains(self, node: str) -> None:
        """Kills the `second` node or the `head` in its next task; returns before."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{node}\n")
        self._process.stdin.flush()


@contextmanager
def ray_cluster() -> Iterator[RayCluster]:
    """A cluster of two nodes with a CPU each."""
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **quiet, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield RayCluster(process, process.stdout.readline().strip())
    finally:
        process.stdin.close()
        process.wait(timeout=60.0)
        process.stdout.close()


def _serve() -> None:
    from ray.cluster_utils import Cluster

    size = {"num_cpus": 1, "object_store_memory": OBJECT_STORE_BYTES}
    head = {**size, "include_dashboard": False, "_system_config": QUICK_CHECKS}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    second = cluster.add_node(**size)
    print(cluster.address, flush=True)
    for line in sys.stdin:
        node = {"second": second, "head": cluster.head_node}[line.strip()]
        (raylet,) = node.all_processes["raylet"]
        deadline = time.monotonic() + 60.0
        while not _trains(raylet.process.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        cluster.remove_node(node, allow_graceful=False)
    cluster.shutdown()


def _trains(node: int) -> bool:
    """Whether a worker of a node runs a task that trains; its title says so."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            title = (folder / "cmdline").read_bytes()
            if title.startswith(b"ray::_train"):
                # After the name in brackets come the state and the parent.
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                if int(parent) == node:
                    return True
        except (FileNotFoundError, ProcessLookupError):
            continue
    return False


if __name__ == "__main__":
    _serve()
