"""Sweeps on a Ray cluster give the runs of one process."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch import Tensor, nn

import tempergat
from tempergat.base import UserError
from tempergat.comparison.machines.ray_workers import RayWorkers
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps.sweep import sweep
from tests.comparison.sweeps.test_sweep import (
    CPU,
    METHODS,
    configs,
    graph,
    timeless,
)
from tests.support.ray_cluster import RayCluster, ray_cluster
from tests.support.tiny_graph import write_graph, write_recipe

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed"
)


class Rows(nn.Module):
    """A user's own module, without a graph."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.linear(x)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster() as started:
        yield started


@needs_ray
@pytest.mark.slow
def test_a_stop_ends_all_tasks(cluster: RayCluster, tmp_path: Path) -> None:
    settings = configs(epochs=100_000)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with (
            Store(tmp_path / "store") as store,
            RayWorkers(cluster.address, "cpu") as workers,
        ):
            signal.setitimer(signal.ITIMER_REAL, 4.0)
            with pytest.raises(KeyboardInterrupt):
                sweep(graph(), settings, range(2), store, workers)
    finally:
        signal.signal(signal.SIGALRM, before)


@needs_ray
@pytest.mark.slow
def test_a_search_on_a_cluster_finds_the_settings_of_one_process(
    cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    # What `auto` stands for.
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    graph = write_graph(tmp_path / "graph.npz")
    recipe = write_recipe(tmp_path / "recipe.yaml", epochs=4)
    there, here = (
        tempergat.compare(
            str(graph),
            methods=["gat", "gated"],
            runs=2,
            recipe=recipe,
            device="cpu",
            progress=False,
            tune=2,
            ray=address,
        )
        for address in ("auto", None)
    )
    assert there.tuned == here.tuned
    assert timeless(there.runs) == timeless(here.runs)


@needs_ray
@pytest.mark.slow
def test_a_mistake_inside_a_task_is_one_line(cluster: RayCluster) -> None:
    here = os.getpid()

    def build(in_channels: int, out_channels: int) -> nn.Module:
        # The check before the sweep is made in this process.
        width = out_channels if os.getpid() == here else out_channels + 1
        return Rows(in_channels, width)

    with pytest.raises(UserError, match="build") as raised:
        tempergat.compare(
            graph(), [build], 1, device="cpu", progress=False, ray=cluster.address
        )
    assert "\n" not in str(raised.value)


@needs_ray
@pytest.mark.slow
def test_a_module_that_works_in_place_trains_on_a_cluster_as_here(
    cluster: RayCluster,
) -> None:
    class Drops(Rows):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            nn.functional.dropout(x, 0.5, self.training, inplace=True)
            return super().forward(x, edge_index)

    options = {"settings": {"epochs": 4}, "device": "cpu", "progress": False}
    # The arrays of a cluster must not be written to at all.
    with pytest.warns(UserWarning, match="module of Drops works in place on x: it"):
        there, here = (
            tempergat.compare(graph(), [Drops, "mlp"], 2, **options, ray=address)
            for address in (cluster.address, None)
        )
    assert timeless(there.runs) == timeless(here.runs)


@needs_ray
@pytest.mark.slow
def test_a_node_killed_in_the_middle_changes_nothing(
    cluster: RayCluster, tmp_path: Path
) -> None:
    # A task takes longer than a node to die.
    settings = configs(epochs=300)
    with Store(tmp_path / "whole") as store:
        whole = sweep(graph(), settings, range(3), store, CPU)
    with Store(tmp_path / "spread") as store:
        with RayWorkers(cluster.address, "auto") as workers:
            cluster.kill_while_it_trains("second")
            spread = sweep(graph(), settings, range(3), store, workers)
        assert len(store.runs()) == 3 * len(METHODS)
    assert workers.restarts >= 1
    assert timeless(spread) == timeless(whole)


@needs_ray
@pytest.mark.slow
def test_a_lost_head_is_one_line_that_says_how_to_go_on(tmp_path: Path) -> None:
    # Does not wait for the head to come back.
    code = (
        "from tempergat.comparison.machines import ray_workers; from tempergat.cli "
        "import main; ray_workers._MOST_AWAY_S = ray_workers._LOOK_EVERY_S = 1; main()"
    )
    path, log = write_graph(tmp_path / "graph.npz"), tmp_path / "log"
    words = ["compare", path, "--methods", "gat,gcn", "--epochs", 100_000]
    words += ["--recipe", "default"]
    with ray_cluster() as own, log.open("w") as file:
        options = ["--out", tmp_path / "store", "--ray", own.address, "--device", "cpu"]
        command = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, [*words, *options])],
            stdout=file,
            stderr=file,
        )
        own.kill_while_it_trains("head")
        assert command.wait(timeout=240.0) == 2
    said = log.read_text().partition(" on cpu of a Ray cluster")[2].splitlines()[1:]
    assert len(said) == 1
    assert "tempergat: the head of the Ray cluster, " in said[0]
    assert "start a cluster again, or leave --ray out, and run the same" in said[0]


@needs_ray
def test_an_address_where_nothing_answers_is_refused_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(UserError, match=rf"nothing answers .*127.0.0.1:{port}"):
        tempergat.compare(graph(), runs=1, ray=f"127.0.0.1:{port}")
    assert time.monotonic() - started < 30.0


@needs_ray
def test_another_service_at_the_address_is_refused_at_once() -> None:
    def answer() -> None:
        peer, _ = server.accept()
        with peer:
            peer.recv(100)
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("", 0)) as server:
        threading.Thread(target=answer, daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(UserError, match=f"answers at {address} is not a Ray"):
            RayWorkers(address)
    assert time.monotonic() - started < 30.0


@needs_ray
@pytest.mark.parametrize("address", ["", "nowhere", "host:", "host:0", "host:70000"])
def test_an_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(UserError, match="give auto or HOST:PORT"):
        RayWorkers(address)


def test_without_ray_the_command_to_install_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'tempergat\[ray\]'"):
        RayWorkers("auto")
