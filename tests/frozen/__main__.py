"""What must not change unseen, compared with the files beside this one.

    python -m tests.frozen [NET...]            print every difference
    python -m tests.frozen --write [NET...]    freeze what is there now

The nets: `tables` of the pages by their bytes, `help` and `commands` of the product,
public `names`, `states` of layers and models, and `hashes` that name runs and graphs.
Numbers of training are those of one kind of CPU; freeze and compare on the same.
"""

import argparse
import difflib
import hashlib
import importlib
import inspect
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FROZEN = Path(__file__).parent
FIXTURES = ROOT / "tests" / "fixtures" / "v0_2_0"
SHORT = "--methods gat,temp_gated --runs 2 --epochs 4 --device cpu"
OWN = "graph --one-hot colour"
# Run in this order in a folder with `graph`, `out` and `model` of the fixtures.
COMMANDS = (
    "methods",
    "methods --json",
    "data list",
    "data list --json",
    "data info cora --json",
    "data info demo --json",
    f"data check {OWN}",
    f"data check {OWN} --json",
    f"compare demo {SHORT} --out out",
    f"compare {OWN} {SHORT} --out out --json",
    f"compare demo {SHORT} --out new --json",
    f"compare demo graph.npz {SHORT} --out several --json",
    f"compare graph.npz {SHORT} --baseline gat --split 50/25/25 --out several",
    "train demo --method gated_temp_v2 --epochs 4 --device cpu --out run --json",
    f"train {OWN} --method gcn --epochs 4 --device cpu --out plain",
    "predict run demo --device cpu --json",
    "predict model graph --device cpu --probabilities --out -",
    "report out --out -",
    "explore model graph --out -",
    "doctor --json",
    "compare corra",
    "compare demo --methods gta",
)
WRITTEN = ("out/demo.csv", "out/demo.md", "out/demo.tex", "several/graph.md")
VOLATILE = {"time_s", "memory_bytes", "versions"}


def tables() -> Iterator[str]:
    """A line per table of a page: hash of its bytes, number of lines, first row."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text()
        for found in re.finditer(r"(?:^\|.*\n?)+", text, re.MULTILINE):
            head = found[0].partition("\n")[0]
            digest = _digest(found[0].rstrip("\n"))
            lines = found[0].count("\n")
            yield f"{page.relative_to(ROOT)} {digest} {lines} lines {head}"


def help_pages() -> Iterator[str]:
    """The help of the application and of every command of the product."""
    from typer.main import get_command

    from tempergat.cli.application import app

    def pages(command: Any, *names: str) -> Iterator[str]:
        yield from _transcript([*names, "--help"], ROOT)
        for name, inner in sorted(getattr(command, "commands", {}).items()):
            yield from pages(inner, *names, name)

    return pages(get_command(app))


def commands() -> Iterator[str]:
    """What commands print and write."""
    from tests.support.tiny_graph import write_graph

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(FIXTURES / "graph", folder / "graph")
        for file, target in (
            ("store.sqlite", "out"),
            ("checkpoint.safetensors", "model"),
        ):
            (folder / target).mkdir()
            shutil.copy(FIXTURES / file, folder / target)
        write_graph(folder / "graph.npz")
        for command in COMMANDS:
            yield from _transcript(command.split(), folder)
        for file in WRITTEN:
            yield f"$ cat {file}"
            yield from (folder / file).read_text().splitlines()


def names() -> Iterator[str]:
    """The public names of the package, with their arguments, and those of its parts."""
    import tempergat

    for name in sorted(tempergat.__all__):
        value = getattr(tempergat, name)
        yield f"tempergat.{name}{inspect.signature(value) if callable(value) else ''}"
    for module in pkgutil.iter_modules(tempergat.__path__, "tempergat."):
        if module.ispkg:
            package = importlib.import_module(module.name)
            yield from (f"{module.name}.{name}" for name in sorted(package.__all__))


def states() -> Iterator[str]:
    """Keys and shapes of the weights of layers, and of the models of all methods."""
    import torch

    from tempergat.nn import METHODS, NodeType, build_model, build_typed_model
    from tempergat.nn.conv.gat import TemperGATConv
    from tempergat.nn.conv.gatv2 import TemperGATv2Conv
    from tempergat.nn.conv.gcn import GCNLayer, LinearLayer

    def state(name: str, module: torch.nn.Module) -> Iterator[str]:
        for key, value in module.state_dict().items():
            yield f"{name} {key} {tuple(value.shape)}"

    for layer in (GCNLayer, LinearLayer):
        yield from state(layer.__name__, layer(5, 4, residual=True))
    options: list[dict[str, Any]] = [
        {"temperature": temperature, "gate": gate}
        for temperature in (None, "layer", "head")
        for gate in (None, "first", "post")
    ]
    options += [{"edge_dim": 3}, {"residual": True}, {"concat": False}, {"bias": False}]
    for kind in (TemperGATConv, TemperGATv2Conv):
        for changes in options:
            name = f"{kind.__name__}({changes})"
            yield from state(name, kind(5, 4, heads=2, **changes))
        yield from state(f"{kind.__name__}((5, 6))", kind((5, 6), 4, heads=2))
    shared = TemperGATv2Conv(5, 4, share_weights=True)
    yield from state("TemperGATv2Conv(share_weights)", shared)
    types = [NodeType("paper", 60, 6), NodeType("author", 3, 0)]
    for method in METHODS:
        yield from state(method, build_model(method, 5, 8, 3, heads=2))
        deep = {"num_layers": 3, "heads": 2, "norm": "batch_norm", "residual": True}
        model = build_model(method, 5, 8, 3, jk="cat", **deep)
        yield from state(f"{method} of 3 layers", model)
        typed = build_typed_model(method, types, 8, 3, heads=2)
        yield from state(f"typed {method}", typed)


def hashes() -> Iterator[str]:
    """Hashes of the settings of all recipes and methods; fingerprints of graphs."""
    from tempergat.data import ReadOptions, as_dataset, csbm
    from tempergat.nn import METHODS
    from tempergat.training import load_recipe, recipe_names
    from tempergat.training.record import config_hash
    from tests.support.run_settings import config
    from tests.support.typed_graph import typed_graph

    for method in METHODS:
        settings = config(method).model_dump(mode="json")
        yield f"RunConfig {method} {config_hash(settings)}"
    for recipe in sorted(recipe_names()):
        for method in METHODS:
            settings = load_recipe(recipe).config_for(method).model_dump(mode="json")
            yield f"{recipe} {method} {config_hash(settings)}"
    own = ReadOptions(one_hot=("colour",))
    graphs = {
        "demo": as_dataset("demo"),
        "demo 50/25/25 seed 3": as_dataset("demo", split="50/25/25", split_seed=3),
        "csbm": csbm(),
        "csbm of 3 classes": csbm(n=60, a=6, b=2, d=12, classes=3, rho=0.1, seed=5),
        "typed": as_dataset(typed_graph()),
        "own": as_dataset(FIXTURES / "graph", options=own),
    }
    for name, graph in graphs.items():
        yield f"graph {name} {graph.fingerprint}"


NETS: dict[str, Callable[[], Iterator[str]]] = {
    "tables": tables,
    "help": help_pages,
    "commands": commands,
    "names": names,
    "states": states,
    "hashes": hashes,
}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _transcript(arguments: list[str], folder: Path) -> Iterator[str]:
    """A command and what it printed, without what differs from run to run."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("TEMPERGAT")
    }
    environment |= {"COLUMNS": "120", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    environment |= {"TEMPERGAT_DATA": str(folder / "data")}
    environment["PYTHONPATH"] = str(ROOT / "src")
    ended = subprocess.run(
        [sys.executable, "-m", "tempergat", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    yield f"$ tempergat {' '.join(arguments)}"
    if ended.returncode:
        yield from ended.stderr.splitlines()
        yield f"status {ended.returncode}"
    out = ended.stdout
    if "--json" in arguments:
        out = json.dumps(_steady(json.loads(out), arguments[0] == "doctor"), indent=1)
    elif out.startswith("<!doctype"):
        out = f"sha256 {_digest(out)}\n{_visible(out)}"
    yield from out.splitlines()


def _steady(value: Any, kinds: bool) -> Any:
    """JSON without times and last digits; with only the kinds of values if asked."""
    if isinstance(value, dict):
        return {
            key: "..." if key in VOLATILE else _steady(inner, kinds)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_steady(inner, kinds) for inner in value]
    if kinds:
        return type(value).__name__
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _visible(page: str) -> str:
    """The text of an HTML page, a line for every piece."""
    text = re.sub(r"<(style|script)\b.*?</\1>|<[^>]+>", "\n", page, flags=re.DOTALL)
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("nets", nargs="*", metavar="NET", help=", ".join(NETS))
    parser.add_argument("--write", action="store_true", help="freeze what is there now")
    arguments = parser.parse_args()
    if unknown := set(arguments.nets) - set(NETS):
        parser.error(f"no net is called {min(unknown)}; choose from {', '.join(NETS)}")
    changed = 0
    for name in arguments.nets or NETS:
        found = list(NETS[name]())
        path = FROZEN / f"{name}.txt"
        if arguments.write:
            path.write_text("\n".join(found) + "\n")
            continue
        frozen = path.read_text().splitlines()
        same = difflib.SequenceMatcher(None, frozen, found, autojunk=False)
        kept = sum(block.size for block in same.get_matching_blocks())
        for line in difflib.unified_diff(frozen, found, "frozen", "now", "", "", 0, ""):
            print(line)
        print(f"{name}: {kept} of {len(frozen)} lines as frozen, {len(found)} now")
        changed += frozen != found
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main())
