"""The examples run as they stand."""

import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
RUN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.stem)
def test_example_runs_and_says_something(script, tmp_path, python):
    done = python.run(RUN, str(script), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("name", ["drop_in", "own_graph", "upgrade_a_checkpoint"])
def test_a_notebook_begins_with_its_title_and_each_cell_is_whole(name):
    _, *cells = re.split(r"^# %%", (EXAMPLES / f"{name}.py").read_text(), flags=re.M)
    kinds = [cell.startswith(" [markdown]\n") for cell in cells]
    assert kinds[0]
    assert cells[0].startswith(" [markdown]\n# # ")
    assert kinds.count(False) >= 3
    for cell, is_text in zip(cells, kinds, strict=True):
        if not is_text:
            compile(cell, name, "exec")


def test_the_readmes_example_runs(tmp_path, python):
    readme = (EXAMPLES.parent / "README.md").read_text()
    example = "".join(re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[:2])
    done = python.run(example, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("temperature ")
