"""The catalogue in YAML: what is wrong in it is named."""

from pathlib import Path
from types import UnionType
from typing import get_args, get_origin, get_type_hints

import pytest

from tempergat.base.errors import UserError
from tempergat.data.catalog.entries import CATALOG, Entry, read_catalog
from tempergat.data.catalog.needs import disk_bytes, reading_bytes, step_bytes

FACTS = (
    "{description: d, reader: r, num_nodes: 1, num_edges: null, num_features: 1, "
    "num_classes: 2, split: s, folders: [g]"
)


@pytest.mark.parametrize("more", [", num_nods: 3", ", name: h"])
def test_unknown_or_missing_fact_is_named(more: str, tmp_path: Path) -> None:
    catalog, files = tmp_path / "catalog.yaml", tmp_path / "files.csv"
    files.write_text("dataset,file,url,bytes,sha256\ng,a.npz,https://a,7,\n")
    catalog.write_text(f"datasets: {{g: {FACTS}}}}}")
    (file,) = read_catalog(catalog, files)["g"].files
    assert (file.name, file.size, file.sha256) == ("a.npz", 7, None)
    catalog.write_text(f"datasets: {{g: {FACTS}{more}}}}}")
    with pytest.raises(UserError, match=rf"g in the catalogue: .*{more[2:6]}"):
        read_catalog(catalog, files)
    catalog.write_text("datasets: {g: {description: d}}")
    with pytest.raises(UserError, match=r"g in the catalogue: .*missing.*reader"):
        read_catalog(catalog, files)


def test_every_fact_has_the_type_that_an_entry_declares() -> None:
    types = get_type_hints(Entry)
    for entry in CATALOG.values():
        for name, declared in types.items():
            value = getattr(entry, name)
            wanted = get_origin(declared) or declared
            # True is a whole number in Python.
            assert isinstance(value, bool) == (wanted is bool), (entry.name, name)
            kinds = get_args(declared) if wanted is UnionType else wanted
            assert isinstance(value, kinds), (entry.name, name)
        for file in (*entry.files, *entry.swapped_files):
            assert isinstance(file.members, tuple), entry.name


def test_every_reader_of_the_catalogue_is_there() -> None:
    from importlib import import_module

    for entry in CATALOG.values():
        module, function = f"tempergat.data.{entry.reader}".rsplit(".", 1)
        assert callable(getattr(import_module(module), function))
        assert all(isinstance(name, str) for name in entry.folders)
        assert bool(entry.files) == (entry.license != "generated, no restriction")


def test_needs_are_those_of_the_counts() -> None:
    products = CATALOG["ogbn-products"]
    raw, kept = disk_bytes(products)
    # The archive has 1.4 GB, and is there beside what is unpacked.
    assert 2e9 < raw < 4e9
    assert 4 * 2_449_029 * 100 + 8 * 123_718_280 < kept < 2.1e9
    assert kept < reading_bytes(products) < 8e9
    cora = CATALOG["cora"]
    assert disk_bytes(cora) == (cora.download_bytes, 0)
    assert reading_bytes(CATALOG["oag-cs"]) > 1_112_691 * 768 * 32


def test_memory_of_a_step_follows_the_formulas_of_the_page_on_large_graphs() -> None:
    products = CATALOG["ogbn-products"]
    whole = step_bytes(products, 256, 3)
    # docs/large.md: 42 GiB were measured.
    assert 40 < whole / 2**30 < 50
    few = step_bytes(products, 256, 3, batch_size=10, fanout=(2, 3))
    nodes = 10 + 20 + 60
    edges = 8 * 2_449_029 + 4 * 123_718_280
    assert few == edges + 4 * nodes * (100 + 5 * 3 * 256)
    every = step_bytes(products, 256, 3, batch_size=10, fanout=(-1, 3))
    assert every == edges + 4 * 2_449_029 * (100 + 5 * 3 * 256)
