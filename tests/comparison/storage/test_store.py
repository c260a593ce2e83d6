"""The store keeps every run once, and refuses files it cannot trust."""

import math
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempergat.base.errors import UserError
from tempergat.comparison.storage.database import SCHEMA_VERSION
from tempergat.comparison.storage.rows import even_groups
from tempergat.comparison.storage.store import Store
from tempergat.training import Condition, LayerRecord, Run, Scores, config_hash
from tests.support.made_up_runs import failed_run, run
from tests.support.processes import ProcessStarter
from tests.support.store_users import cut_groups, write_seeds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out" / "store.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store(path) as opened:
        yield opened


def test_a_run_comes_back_as_it_was_put(path: Path) -> None:
    changed = run(seed=2, condition=Condition(change="other gates"))
    kept = [run(), failed_run(seed=1), changed]
    with Store(path) as store:
        assert store.put_group(kept) == 3
    with Store(path) as store:
        assert sorted(store.runs(), key=lambda r: r.seed) == kept


def test_the_same_run_is_stored_once_and_not_overwritten(store: Store) -> None:
    store.put_group([run(test=0.8)])
    assert store.put_group([run(test=0.9), run(seed=1)]) == 1
    assert [r.scores["best_val_accuracy"].test for r in store.runs()] == [0.8, 0.8]


def test_another_method_seed_configuration_or_data_is_another_run(store: Store) -> None:
    others = [
        run(),
        run(method="gatv2"),
        run(seed=1),
        run(config={"learning_rate": 0.01}),
        run(fingerprint="changed"),
    ]
    assert store.put_group(others) == 5


def test_the_configuration_hash_ignores_the_order_of_keys() -> None:
    assert config_hash({"a": 1, "b": [2]}) == config_hash({"b": [2], "a": 1})
    assert config_hash({"a": 1}) != config_hash({"a": 2})


def test_a_group_is_stored_whole_or_not_at_all(store: Store) -> None:
    bad = run(seed=1, group_id=99)
    with pytest.raises(UserError, match="FOREIGN KEY"):
        store.put_group([run(), bad])
    assert store.runs() == []
    assert store.put_group([run()]) == 1


def test_a_group_written_in_part_is_cut_to_that_size(path: Path) -> None:
    config = {"learning_rate": 0.005}
    study = ("print-of-cora", "gat", config_hash(config))
    with Store(path) as store:
        (group,) = store.groups(*study, range(5), 5)
        first = [run(seed=seed, group_id=group.id) for seed in range(2)]
        parts = store.put_part(group, first)
        assert [part.seeds for part in parts] == [(0, 1), (2, 3), (4,)]
        assert parts[0].id == group.id
        assert store.runs() == first
        assert store.parts_of(group) == parts
        assert store.pending(parts) == parts[1:]
    with Store(path) as store:
        assert store.groups(*study, range(5), 5) == parts
        # Another process that still had the whole group in hand comes too late.
        late = [run(seed=seed, group_id=group.id) for seed in range(3)]
        assert store.put_part(group, late) == parts
        assert [r.seed for r in store.runs()] == [0, 1, 2]


def test_runs_are_filtered_by_everything_given(store: Store) -> None:
    store.put_group(
        [run(m, s, dataset=d) for d in ("a", "b") for m in "xy" for s in range(3)]
    )
    assert len(store.runs()) == 12
    found = store.runs(dataset="a", methods=["y"], seeds=[0, 2])
    assert [(r.dataset, r.method, r.seed) for r in found] == [
        ("a", "y", 0),
        ("a", "y", 2),
    ]
    assert store.runs(fingerprint="print-of-b", methods=[]) == []
    assert len(store.runs(config_hashes=[run().config_hash])) == 12


def test_runs_come_in_an_order_independent_of_writing(tmp_path: Path) -> None:
    runs = [run(m, s) for m in ("gat", "gcn") for s in range(3)]
    with Store(tmp_path / "a") as one, Store(tmp_path / "b") as two:
        one.put_group(runs)
        two.put_group(runs[::-1])
        assert one.runs() == two.runs()


def test_groups_are_cut_once_whatever_size_is_asked_later(path: Path) -> None:
    study = ("print", "gat", "hash")
    with Store(path) as store:
        first = store.groups(*study, range(10), size=4)
        assert [g.seeds for g in first] == [(0, 1, 2, 3), (4, 5, 6), (7, 8, 9)]
    with Store(path) as store:
        assert store.groups(*study, range(10), size=7) == first
        grown = store.groups(*study, range(14), size=3)
        assert grown[:3] == first
        assert [g.seeds for g in grown[3:]] == [(10, 11), (12, 13)]
        assert store.groups(*study, [9, 13], size=1) == [grown[2], grown[4]]


def test_seeds_fall_into_groups_of_about_one_size() -> None:
    groups = even_groups(range(50), most=24)
    assert [len(group) for group in groups] == [17, 17, 16]
    assert [seed for group in groups for seed in group] == list(range(50))
    assert even_groups([3, 5], most=24) == [[3, 5]]
    assert even_groups([], most=24) == []


def test_methods_are_cut_apart(store: Store) -> None:
    store.groups("print", "gat", "hash", range(4), size=4)
    assert [
        g.seeds for g in store.groups("print", "gatv2", "hash", range(4), size=2)
    ] == [(0, 1), (2, 3)]


@settings(max_examples=15, deadline=None)
@given(
    asked=st.lists(
        st.tuples(st.sets(st.integers(0, 30), min_size=1), st.integers(1, 9)),
        min_size=1,
        max_size=5,
    )
)
def test_every_seed_is_in_exactly_one_group(asked: list[tuple[set[int], int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s") as store:
        for seeds, size in asked:
            groups = store.groups("print", "gat", "hash", sorted(seeds), size)
            assert seeds <= {seed for group in groups for seed in group.seeds}
        every = [
            s
            for g in store.groups("print", "gat", "hash", range(31), 5)
            for s in g.seeds
        ]
        assert sorted(every) == list(range(31))


def test_a_group_is_pending_until_all_its_runs_are_stored(store: Store) -> None:
    groups = store.groups("print-of-cora", "gat", run().config_hash, range(4), 2)
    store.put_group(
        [run(seed=0, group_id=groups[0].id), failed_run(seed=1), run(seed=2)]
    )
    assert store.pending(groups) == [groups[1]]
    store.put_group([run(seed=3)])
    assert store.pending(groups) == []


def test_values_that_are_not_numbers_survive_in_a_failed_run(store: Store) -> None:
    diverged = failed_run(last=LayerRecord((math.nan, 1.0), (math.inf,)))
    store.put_group([diverged])
    (kept,) = store.runs()
    assert math.isnan(kept.last.temperatures[0])
    assert kept.last.temperatures[1] == 1.0
    assert math.isnan(kept.last.gate_means[0])


def test_condition_and_precision_enter_the_hash_only_where_they_differ() -> None:
    # The hash of stored runs.
    assert run().config_hash == "38f0c575b22fe2f3"
    noisy = run(condition=Condition("gaussian", 0.5)).config_hash
    assert noisy == "c153cb128d0ea655"
    rounded = run(matmul_precision="high").config_hash
    changed = run(condition=Condition(change="other gates")).config_hash
    assert len({run().config_hash, noisy, rounded, changed}) == 4


@pytest.mark.parametrize("test", [math.nan, 81.4, -0.1])
def test_a_score_outside_of_its_metric_is_refused(test: float) -> None:
    with pytest.raises(ValueError, match="are no accuracy"):
        run(scores={"last_epoch": Scores(1, 1.0, 0.5, test)})
    with pytest.raises(ValueError, match="no metric 'of_later'"):
        run(config={"metric": "of_later"})


def test_a_failed_run_needs_a_reason_and_a_done_one_scores() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        run(status="failed", scores={})
    with pytest.raises(ValueError, match="unscored"):
        run(scores={})


def test_commits_reach_the_disk(store: Store) -> None:
    connection = store._connection
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_a_full_disk_costs_the_group_but_not_the_store(path: Path) -> None:
    with Store(path) as store:
        store.put_group([run()])
        # SQLite meets this limit as it meets the end of a disk.
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(UserError, match="check the disk and its free space"):
            store.put_group([run(seed=seed) for seed in range(1, 100)])
    with Store(path) as store:
        assert [r.seed for r in store.runs()] == [0]
        assert store.put_group([run(seed=seed) for seed in range(1, 100)]) == 99


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (SCHEMA_VERSION + 1, f"newer .*version {SCHEMA_VERSION + 1},.*; upgrade"),
        (SCHEMA_VERSION - 1, f"older .*version {SCHEMA_VERSION - 1},.*; move it away"),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_from_another_version_is_refused_and_not_changed(
    path: Path, version: int, words: str, read_only: bool
) -> None:
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(UserError, match=words):
        Store(path, read_only=read_only)
    assert path.read_bytes() == before


def _other_tables(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()


def _text(path: Path) -> None:
    path.write_text("these are not the bytes of a database at all\n" * 40)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_other_tables, "another program"),
        (_text, r"damaged.*move it away and run again"),
    ],
)
def test_a_file_that_is_no_store_is_refused_and_not_changed(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "store.sqlite"
    make(path)
    before = path.read_bytes()
    with pytest.raises(UserError, match=words):
        Store(path)
    assert path.read_bytes() == before


def test_a_folder_in_place_of_the_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot use the store"):
        Store(tmp_path)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(UserError, match="cannot make the folder"):
        Store(tmp_path / "out" / "store.sqlite")


def _filled(path: Path) -> list[Run]:
    runs = [run(m, s) for m in ("gat", "gatv2", "gcn") for s in range(40)]
    with Store(path) as store:
        store.groups("print-of-cora", "gat", run().config_hash, range(40), 5)
        store.put_group(runs)
    with Store(path) as store:
        return store.runs()


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.95])
def test_a_truncated_store_is_refused_on_opening(tmp_path: Path, share: float) -> None:
    path = tmp_path / "store.sqlite"
    _filled(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(UserError, match="damaged"):
        Store(path)


def test_damage_deep_inside_is_found_on_opening(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    _filled(path)
    content = bytearray(path.read_bytes())
    # The first bytes of the last page: what kind of page it is.
    content[-4096:-4088] = b"\xff" * 8
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        Store(path)


@pytest.mark.parametrize("existing", [False, True])
def test_a_read_only_folder_is_refused(
    request: pytest.FixtureRequest, python: ProcessStarter, existing: bool
) -> None:
    # Not below pytest's own folder, which only its owner may enter.
    folder = Path(tempfile.mkdtemp())
    request.addfinalizer(lambda: shutil.rmtree(folder))
    if existing:
        _filled(folder / "store.sqlite")
    folder.chmod(0o555)
    # Root may write anywhere, so ask as somebody else.
    code = (
        "import os, sys\nfrom tempergat.base.errors import UserError\n"
        "from tempergat.comparison.storage.store import Store\n"
        "if os.geteuid() == 0:\n    os.setuid(65534)\n"
        "try:\n    Store(sys.argv[1])\n"
        "except UserError as error:\n    print(error)\n"
    )
    done = python.run(code, str(folder / "store.sqlite"))
    folder.chmod(0o755)
    assert "make its folder writable or choose another with --out" in done.stdout, done


def _run_at_once(target: Callable[..., None], arguments: list[tuple[Any, ...]]) -> None:
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.support.store_users"])
    start = context.Barrier(len(arguments))
    workers = [context.Process(target=target, args=(*a, start)) for a in arguments]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * len(workers)


def test_processes_share_a_store_from_its_first_moment(tmp_path: Path) -> None:
    for attempt in range(6):
        path = tmp_path / f"store-{attempt}.sqlite"
        # Neighbours overlap: each seed but the outermost is written by two.
        _run_at_once(
            write_seeds, [(path, first, first + 10) for first in (0, 5, 10, 15)]
        )
        with Store(path) as store:
            assert [r.seed for r in store.runs(methods=["gat"])] == list(range(25))
            assert len(store.runs()) == 50


def test_two_processes_cutting_groups_agree(path: Path) -> None:
    _run_at_once(cut_groups, [(path, 2), (path, 3)])
    with Store(path) as store:
        groups = store.groups("print", "gat", "hash", range(29), 1)
    assert sorted(s for g in groups for s in g.seeds) == list(range(29))


def test_an_error_that_quotes_damaged_text_is_shortened(path: Path) -> None:
    with Store(path) as store:
        store.put_group([run()])
    connection = sqlite3.connect(path)
    connection.execute(
        "UPDATE runs SET record = CAST(CAST(record AS BLOB) || x'ff' AS TEXT)"
    )
    connection.commit()
    connection.close()
    with Store(path) as store, pytest.raises(UserError) as raised:
        store.runs()
    assert "is damaged (Could not decode to UTF-8" in str(raised.value)
    assert len(str(raised.value).replace(str(path), "")) < 200


def test_a_store_is_not_made_through_a_link(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"store.sqlite is a link to .*; remove it"):
        Store(path)
    assert not (tmp_path / "elsewhere").exists()
