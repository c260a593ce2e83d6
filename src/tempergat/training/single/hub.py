"""Trained models in the form of the Hugging Face Hub: a folder of plain files.

The weights are a checkpoint; `config.json` and the model card repeat its metadata for
readers. Nothing in the folder is code.
"""

from __future__ import annotations

import importlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tempergat
from tempergat.base import UserError, first_line, write_into
from tempergat.training.single import checkpoint

if TYPE_CHECKING:
    from tempergat.training.single.model import TrainedModel

MODEL_FILE = checkpoint.PUBLISHED_NAME
_CARD = """\
---
library_name: tempergat
tags:
- graph-neural-network
- node-classification
---

# {method}

A node classifier: {sizes}; {outcome}. Made with tempergat {version}.

```python
import tempergat

model = tempergat.from_pretrained("{repo_id}")
classes = model.predict("path/of/my/graph")
```

`config.json` has the settings, the names of features and classes, and the versions.
"""


def write_folder(
    folder: Path, weights: bytes, metadata: Mapping[str, Any], **card: str
) -> None:
    """Writes a checkpoint as weights, its metadata, and the words of the model card.

    Raises:
        UserError: The folder cannot be written to.
    """
    about = {
        "library_name": "tempergat",
        "tempergat_version": tempergat.__version__,
        **metadata,
    }
    text = json.dumps(about, indent=1, sort_keys=True, allow_nan=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot make the folder {folder}: {error.strerror}; choose another one"
        ) from error
    write_into(folder, MODEL_FILE, weights)
    write_into(folder, "config.json", text + "\n")
    words = _CARD.format(**card, version=tempergat.__version__)
    write_into(folder, "README.md", words)


def upload(
    model: TrainedModel, repo_id: str, private: bool | None, token: str | None
) -> str:
    """Uploads a model, as `TrainedModel.push_to_hub` says; returns its address.

    Raises:
        UserError: huggingface_hub is not installed, or the upload failed.
    """
    hub = _hub()
    with tempfile.TemporaryDirectory() as folder, _explained(f"upload to {repo_id!r}"):
        model.save_pretrained(folder, repo_id=repo_id)
        api = hub.HfApi(token=token)
        page = api.create_repo(repo_id, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=repo_id,
            folder_path=folder,
            commit_message="A model trained with tempergat",
        )
    return str(page)


def model_file(
    source: str | os.PathLike[str], revision: str | None, token: str | None
) -> Path:
    """The weights that `from_pretrained` reads, downloaded where needed.

    Raises:
        UserError: The folder has no model, huggingface_hub is not installed, or the
            download failed.
    """
    folder = Path(source)
    if folder.is_dir():
        return checkpoint.file_at(folder)
    name = os.fspath(source)
    if name.startswith((".", "~", os.sep)) or name.count("/") != 1:
        raise UserError(
            f"{name} is neither a folder nor a repository of the Hub; give the folder "
            "of `save_pretrained`, or a repository as user/name"
        )
    with _explained(f"download {MODEL_FILE} of {name!r}"):
        # The weights alone: no other file of the repository is read.
        file = _hub().hf_hub_download(name, MODEL_FILE, revision=revision, token=token)
    return Path(file)


def _hub() -> Any:
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise UserError(
            "huggingface_hub is not installed; install it with: pip install "
            "'tempergat[hub]'"
        ) from error


@contextmanager
def _explained(action: str) -> Iterator[None]:
    try:
        yield
    # The Hub's own errors are subclasses of these.
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot {action}: {first_line(error)}; check the name, the network and "
            "`hf auth login`"
        ) from error
