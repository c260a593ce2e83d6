"""Models in a folder and on the Hugging Face Hub, which a local folder plays here."""

import inspect
import json
import shutil
import sys
from pathlib import Path

import pytest
import torch

import tempergat
from tempergat.base import UserError
from tempergat.training import TrainedModel, train
from tests.support.run_settings import small_graph
from tests.support.tiny_graph import write_recipe

hub = pytest.importorskip("huggingface_hub")


@pytest.fixture
def model(tmp_path: Path) -> TrainedModel:
    recipe = write_recipe(tmp_path / "recipe.yaml")
    return train(small_graph(), recipe=recipe, device="cpu", progress=False)


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a repository for each name, in the place of the Hub.

    The calls must fit the functions that they replace.
    """
    root = tmp_path / "remote"

    class Api:
        def __init__(self, **options: object) -> None:
            inspect.signature(real.__init__).bind(self, **options)

        def create_repo(self, repo_id: str, **options: object) -> str:
            inspect.signature(real.create_repo).bind(self, repo_id, **options)
            (root / repo_id).mkdir(parents=True, exist_ok=True)
            return f"https://hub.example/{repo_id}"

        def upload_folder(self, **options: str) -> None:
            inspect.signature(real.upload_folder).bind(self, **options)
            target = root / options["repo_id"]
            shutil.copytree(options["folder_path"], target, dirs_exist_ok=True)

    def download(repo_id: str, filename: str, **options: object) -> str:
        inspect.signature(real_download).bind(repo_id, filename, **options)
        file = root / repo_id / filename
        if not file.exists():
            raise FileNotFoundError(f"404: no {repo_id}/{filename}\nsecond line")
        return str(file)

    real, real_download = hub.HfApi, hub.hf_hub_download
    monkeypatch.setattr(hub, "HfApi", Api)
    monkeypatch.setattr(hub, "hf_hub_download", download)
    return root


def test_a_folder_holds_weights_and_plain_text_alone(
    model: TrainedModel, tmp_path: Path
) -> None:
    folder = model.save_pretrained(tmp_path / "saved")
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["README.md", "config.json", "model.safetensors"]
    config = json.loads((folder / "config.json").read_text())
    assert config["library_name"] == "tempergat"
    assert config["config"]["method"] == "temp_gated"
    card = (folder / "README.md").read_text()
    assert 'tempergat.from_pretrained("saved")' in card


def test_links_in_the_folder_are_replaced_and_not_followed(
    model: TrainedModel, tmp_path: Path
) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "published"
    victim.write_text("precious")
    folder.mkdir()
    for name in ("model.safetensors", "config.json", "README.md"):
        (folder / name).symlink_to(victim)
    model.save_pretrained(folder)
    assert victim.read_text() == "precious"
    assert tempergat.load_model(folder, device="cpu").num_classes == model.num_classes
    # A path that the user gave is followed.
    (tmp_path / "link").symlink_to(victim)
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert victim.read_bytes() == (folder / "model.safetensors").read_bytes()


def test_a_model_from_a_folder_predicts_the_same(
    model: TrainedModel, tmp_path: Path
) -> None:
    model.save_pretrained(tmp_path / "saved")
    again = tempergat.from_pretrained(tmp_path / "saved", device="cpu")
    data = small_graph().data
    assert torch.equal(again.predict_proba(data), model.predict_proba(data))
    assert again.run.scores == model.run.scores
    loaded = tempergat.load_model(tmp_path / "saved", device="cpu")
    assert torch.equal(loaded.predict_proba(data), model.predict_proba(data))


def test_the_folder_of_a_training_run_is_read_too(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "recipe.yaml")
    folder = tmp_path / "run"
    trained = train(
        small_graph(), recipe=recipe, device="cpu", progress=False, out=folder
    )
    again = tempergat.from_pretrained(folder, device="cpu")
    assert torch.equal(
        again.predict(small_graph().data), trained.predict(small_graph().data)
    )


def test_a_pushed_model_is_loaded_by_its_name(
    model: TrainedModel, remote: Path
) -> None:
    page = model.push_to_hub("someone/shops", private=True, token="secret")
    assert page == "https://hub.example/someone/shops"
    card = (remote / "someone/shops/README.md").read_text()
    assert 'tempergat.from_pretrained("someone/shops")' in card
    again = tempergat.from_pretrained("someone/shops", revision="main", device="cpu")
    data = small_graph().data
    assert torch.equal(again.predict_proba(data), model.predict_proba(data))


def test_a_pickle_in_a_repository_is_never_read(remote: Path) -> None:
    folder = remote / "someone/pickled"
    folder.mkdir(parents=True)
    torch.save({"weight": torch.ones(2)}, folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"cannot download model\.safetensors"):
        tempergat.from_pretrained("someone/pickled")
    torch.save({"weight": torch.ones(2)}, folder / "model.safetensors")
    with pytest.raises(UserError, match="is not a checkpoint"):
        tempergat.from_pretrained("someone/pickled")


def test_errors_of_the_hub_are_one_line_with_a_remedy(remote: Path) -> None:
    with pytest.raises(UserError, match=r"404.*check the name") as error:
        tempergat.from_pretrained("no/such")
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="neither a folder nor a repository"):
        tempergat.from_pretrained("./missing/folder")


def test_without_the_package_the_extra_is_named(
    model: TrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match=r"tempergat\[hub\]"):
        model.push_to_hub("someone/shops")
    with pytest.raises(UserError, match=r"tempergat\[hub\]"):
        tempergat.from_pretrained("someone/shops")
