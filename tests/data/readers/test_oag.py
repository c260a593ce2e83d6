"""The files of the Open Academic Graph, of every version that wrote them."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.transforms import ToUndirected

from tempergat.base.errors import UserError
from tempergat.data.catalog.entries import Entry
from tempergat.data.dataset import fingerprint
from tempergat.data.fetch.locate import is_local
from tempergat.data.readers.pickled import read_oag
from tests.data.conftest import Server, served
from tests.support import raw_layouts
from tests.support.entries import load_entry

pytestmark = pytest.mark.usefixtures("no_mirror")


def embeddings(rows: int, width: int = 4) -> np.ndarray:
    values = np.empty(rows, dtype=object)
    for row in range(rows):
        values[row] = np.full(width, row, dtype=np.float32)
    return values


def oag_content(papers: int = 4) -> dict[str, object]:
    def nodes(kind: str, count: int) -> dict[str, int]:
        return {f"{kind}{number}": number for number in range(count)}

    def table(kind: str, count: int, **more: np.ndarray) -> object:
        names = np.array(list(nodes(kind, count)), dtype=object)
        columns = {"id": names, **more, "emb": embeddings(count)}
        return raw_layouts.pandas_table(columns)

    years = np.arange(2015, 2015 + papers)
    return {
        "node_forward": {
            "paper": nodes("p", papers),
            "author": nodes("a", 2),
            "venue": nodes("v", 3),
        },
        "node_feature": {
            "paper": table("p", papers, time=years),
            "author": table("a", 2),
            "venue": table("v", 3),
        },
        "edge_list": {
            "paper": {
                "paper": {
                    "PP_cite": {0: {1: 2016, 3: 2018}},
                    "rev_PP_cite": {1: {0: 2016}},
                },
                "author": {"AP_write_first": {2: {1: 2017}, 0: {0: 2015, 1: 2015}}},
                "venue": {"rev_PV_Journal": {0: {1: 2015}}},
            },
            "venue": {
                "paper": {
                    "PV_Journal": {1: {0: 2015, 2: 2017}, 0: {}, 2: {3: 2018}},
                    "PV_Conference": {0: {1: 2016}},
                }
            },
        },
    }


def oag(server: Server, name: str, nodes: int, content: object) -> Entry:
    return served(server, name, nodes, 2, raw_layouts.torch_container(content))


def test_oag_is_read_without_pandas_or_torch(server: Server, tmp_path: Path) -> None:
    dataset = load_entry(oag(server, "oag-cs", 6, oag_content()), tmp_path)
    data = dataset.data
    assert {kind: data[kind].num_nodes for kind in data.node_types} == {
        "paper": 4,
        "author": 2,
    }
    assert data["paper"].x[:, 0].tolist() == [0, 1, 2, 3]
    assert data["paper"].y.tolist() == [0, -1, 0, 1]
    assert data["paper"].year.tolist() == [2015, 2016, 2017, 2018]
    masks = [dataset.store[f"{part}_mask"] for part in ("train", "val", "test")]
    assert [mask.nonzero().flatten().tolist() for mask in masks] == [[0], [2], [3]]
    expected = HeteroData()
    expected["paper"].num_nodes, expected["author"].num_nodes = 4, 2
    expected["paper", "PP_cite", "paper"].edge_index = torch.tensor([[1, 3], [0, 0]])
    written = torch.tensor([[1, 0, 1], [2, 0, 0]])
    expected["author", "AP_write_first", "paper"].edge_index = written
    expected = ToUndirected(merge=True)(expected)
    assert sorted(data.edge_types) == sorted(expected.edge_types)
    for kind in expected.edge_types:
        ours, theirs = data[kind].edge_index, expected[kind].edge_index
        assert sorted(ours.T.tolist()) == sorted(theirs.T.tolist())


def test_oag_chem_and_engineering_are_distinguished_by_their_counts(
    server: Server, tmp_path: Path
) -> None:
    entry = oag(server, "oag-chem", 152, oag_content(papers=10))
    swapped = entry.swapped_files[0]
    server.files[swapped.name] = raw_layouts.torch_container(oag_content(papers=150))
    swapped = dataclasses.replace(swapped, url=f"{server.url}/{swapped.name}")
    entry = dataclasses.replace(entry, swapped_files=(swapped,))
    assert load_entry(entry, tmp_path).data["paper"].num_nodes == 150
    # H2GB reads chemistry from the file that is called engineering.
    assert [name for name, _ in server.requests] == [
        "OAG_Engineering.pt",
        "OAG_Chemistry.pt",
    ]
    (tmp_path / "one/oag-chem/raw").mkdir(parents=True)
    content = server.files.pop("OAG_Chemistry.pt")
    (tmp_path / "one/oag-chem/raw/OAG_Chemistry.pt").write_bytes(content)
    assert is_local(entry, tmp_path / "one")
    assert load_entry(entry, tmp_path / "one").data["paper"].num_nodes == 150
    # The first file is another graph's, and the second one is gone.
    seen = r"OAG_Engineering\.pt holds a graph of 12 nodes instead of 152 nodes, and "
    with pytest.raises(UserError, match=f"{seen}oag-chem could not be found"):
        load_entry(entry, tmp_path / "two")
    lone = dataclasses.replace(entry, swapped_files=())
    with pytest.raises(UserError, match="graph of 12 nodes, but oag-chem has 152"):
        load_entry(lone, tmp_path / "elsewhere")


def test_oag_file_that_names_other_classes_is_refused(
    server: Server, tmp_path: Path
) -> None:
    content = oag_content()
    hostile = raw_layouts._Named("os", "system")
    content["extra"] = raw_layouts._Call(hostile, f"touch {tmp_path}/hacked")
    with pytest.raises(UserError, match=r"asks to load os.system"):
        load_entry(oag(server, "oag-cs", 6, content), tmp_path)
    assert not (tmp_path / "hacked").exists()


# Written by these versions on Python 3.7 and 3.11: with defaultdicts of functions where
# dill is named, and lists in place of arrays in two of them.
WRITTEN = sorted((Path(__file__).parents[2] / "fixtures" / "oag").glob("*.pt"))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_oag_is_read_whichever_versions_wrote_it(path: Path) -> None:
    data = read_oag({path.name: path})
    assert fingerprint(data) == fingerprint(read_oag({"x": WRITTEN[0]}))
    assert data["paper"].x.tolist() == [[float(row)] * 4 for row in range(4)]
    assert data["paper"].y.tolist() == [0, -1, 0, 1]
    assert data["paper"].year.tolist() == [2015, 2016, 2017, 2018]
    written = data["author", "AP_write_first", "paper"].edge_index
    assert written.T.tolist() == [[1, 2], [0, 0], [1, 0]]


@pytest.mark.parametrize("owner", ["os", "posix"])
def test_oag_file_of_dill_runs_nothing(owner: str, tmp_path: Path) -> None:
    named, call = raw_layouts._Named, raw_layouts._Call
    module = call(named("dill._dill", "_import_module"), owner)
    shell = call(named("dill._dill", "_get_attr"), module, "system")
    content = {"extra": call(shell, f"touch {tmp_path}/hacked")}  # type: ignore[arg-type]
    path = tmp_path / "g.pt"
    path.write_bytes(raw_layouts.torch_container(content))
    with pytest.raises(UserError, match=rf"a reference to {owner}\.system.*trust"):
        read_oag({"g.pt": path})
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize(
    ("shape", "kind", "values"),
    [((10**6,), "O", ["a"]), ((-1, -1), "O", ["a"]), ((1,), "O", bytes(8))],
)
def test_array_of_another_size_than_its_values_is_refused(
    shape: tuple[int, ...], kind: str, values: object, tmp_path: Path
) -> None:
    named, call = raw_layouts._Named, raw_layouts._Call
    make = named("numpy.core.multiarray", "_reconstruct")
    state = (1, shape, np.dtype(kind), False, values)
    content = oag_content()
    content["extra"] = call(make, named("numpy", "ndarray"), (0,), "b", state=state)
    path = tmp_path / "g.pt"
    path.write_bytes(raw_layouts.torch_container(content))
    with pytest.raises(UserError, match=r"g\.pt is not a readable pickle"):
        read_oag({"g.pt": path})


def test_state_of_a_dtype_cannot_crash_the_reader(tmp_path: Path) -> None:
    named, call = raw_layouts._Named, raw_layouts._Call
    # numpy takes the number for a tuple.
    state = (3, "<", None, -1, -1, 0)
    content = oag_content()
    content["extra"] = call(named("numpy", "dtype"), "i8", False, True, state=state)
    path = tmp_path / "g.pt"
    path.write_bytes(raw_layouts.torch_container(content))
    assert read_oag({"g.pt": path})["paper"].y.tolist() == [0, -1, 0, 1]


def test_oag_file_that_cannot_be_read_is_saved_again_as_the_error_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = oag_content()
    for kind, numbers in content["node_forward"].items():  # type: ignore[attr-defined]
        # pandas 3 saves words so, older versions only where they are asked to.
        words = pd.array(list(numbers), dtype="string")
        columns = {"id": words, "emb": list(embeddings(len(numbers)))}
        if kind == "paper":
            columns["time"] = list(range(2015, 2019))
        content["node_feature"][kind] = pd.DataFrame(columns)  # type: ignore[index]
    monkeypatch.chdir(tmp_path)
    torch.save(content, "g.pt")
    with pytest.raises(UserError, match="asks to load pandas") as caught:
        read_oag({"g.pt": Path("g.pt")})
    assert "damaged, hostile or of another version; if you trust" in str(caught.value)
    assert "delete" not in str(caught.value)
    saved = Path("g.pt").read_bytes()
    exec(str(caught.value).split("`")[1], {})
    # H2GB cannot read plain data, so its file stays.
    assert Path("g.pt").read_bytes() == saved
    Path("plain.pt").rename("g.pt")
    assert read_oag({"g.pt": Path("g.pt")})["paper"].y.tolist() == [0, -1, 0, 1]


@pytest.mark.parametrize("cut", [0, 10, 300, 1500])
def test_truncated_oag_file_is_one_line(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "g.pt"
    path.write_bytes(WRITTEN[0].read_bytes()[:cut])
    with pytest.raises(UserError, match=r"g\.pt .*trust the file") as caught:
        read_oag({"g.pt": path})
    assert "\n" not in str(caught.value)
