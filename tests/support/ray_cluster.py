"""A Ray cluster of two nodes on this machine, each with its own processes.

Run as a script, it prints the cluster's address. It kills the second node when it reads
`kill`, and ends when its input ends.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

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

    def kill_second_node(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("kill\n")
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
        if line.strip() == "kill":
            cluster.remove_node(second, allow_graceful=False)
    cluster.shutdown()


if __name__ == "__main__":
    _serve()
