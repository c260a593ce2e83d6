"""The catalogue in YAML: what is wrong in it is named."""

from pathlib import Path

import pytest

from tempergat.base.errors import UserError
from tempergat.data.catalog.entries import CATALOG, read_catalog

FACTS = (
    "{description: d, reader: r, num_nodes: 1, num_edges: null, num_features: 1, "
    "num_classes: 2, split: s, folders: [g]"
)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (", num_nods: 3", "g in the catalogue has num_nods: 3"),
        (", name: h", "has name: 'h'"),
        (", metric: 3", "has metric: 3"),
        (", num_splits: true", "has num_splits: True"),
        (", stratified: 1", "has stratified: 1"),
        (", members: a", "has members: 'a'"),
    ],
)
def test_unknown_fact_or_one_of_another_type_is_named(
    more: str, named: str, tmp_path: Path
) -> None:
    catalog, files = tmp_path / "catalog.yaml", tmp_path / "files.csv"
    files.write_text("dataset,file,url,bytes,sha256\ng,a.npz,https://a,7,\n")
    catalog.write_text(f"datasets: {{g: {FACTS}}}}}")
    (file,) = read_catalog(catalog, files)["g"].files
    assert (file.name, file.size, file.sha256) == ("a.npz", 7, None)
    catalog.write_text(f"datasets: {{g: {FACTS}{more}}}}}")
    with pytest.raises(UserError, match=named):
        read_catalog(catalog, files)
    catalog.write_text("datasets: {g: {description: d}}")
    with pytest.raises(UserError, match=r"g in the catalogue: .*missing.*reader"):
        read_catalog(catalog, files)


def test_every_reader_of_the_catalogue_is_there() -> None:
    from importlib import import_module

    for entry in CATALOG.values():
        module, function = f"tempergat.data.{entry.reader}".rsplit(".", 1)
        assert callable(getattr(import_module(module), function))
        assert all(isinstance(name, str) for name in entry.folders)
        assert bool(entry.files) == (entry.license != "generated, no restriction")
