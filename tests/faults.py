"""Deliberate faults in the package, each with the test that must notice it.

Run as `python -m tests.faults [NUMBER ...]`. Every fault is made in a copy of the
project; the working tree stays as it is. Whoever moves or rewrites a line that a fault
changes moves the fault with it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/tempergat")
TESTS_FAILED = 1
# The finder of an editable install comes before PYTHONPATH.
SITE = """import sys
sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
"""


class Fault(NamedTuple):
    """A fault: what it does to a user, a text of a file made wrong, and its test."""

    broken: str
    file: str
    old: str
    new: str
    test: str


FAULTS = (
    Fault(
        "a file is written through a planted link, and a kill leaves half of it",
        "base/files.py",
        "os.replace(temporary, path)",
        "path.write_bytes(content)",
        "base/test_files.py::test_a_planted_link_is_replaced_and_not_followed",
    ),
    Fault(
        "Holm's correction lets a larger p pass where a smaller one did not",
        "stats/hypothesis_tests.py",
        "max(largest, min(1.0, (len(tested) - position) * p))",
        "min(1.0, (len(tested) - position) * p)",
        "stats/test_paired.py::test_holm_worked_by_hand",
    ),
    Fault(
        "splits that share training nodes are tested as if independent",
        "stats/paired.py",
        "error = max(std, step) * math.sqrt(1.0 / count + test_to_train)",
        "error = max(std, step) * math.sqrt(1.0 / count)",
        "stats/test_best_set.py"
        "::test_splits_that_share_training_nodes_are_corrected_for_worked_by_hand",
    ),
    Fault(
        "a method that no test was made of is said to be possibly the best",
        "stats/best.py",
        'return "left out" if method in self.left_out else "too few runs"',
        'return "left out" if method in self.left_out else "yes"',
        "comparison/test_verdict.py"
        "::test_a_lucky_run_is_not_the_highest_and_makes_nothing_untestable",
    ),
    Fault(
        "a loss on the attention weights trains nothing",
        "ops/attention_op.py",
        "given = (dout, dweights, dgate_sum,",
        "given = (dout, None, dgate_sum,",
        "ops/test_attention_op.py"
        "::test_the_gradient_of_the_weights_alone_reaches_the_vector",
    ),
    Fault(
        "a higher temperature sharpens attention",
        "ops/reference.py",
        "else x / temperature_of(theta).view(-1, 1)",
        "else x * temperature_of(theta).view(-1, 1)",
        "nn/test_three_ways.py::test_the_three_ways_agree",
    ),
    Fault(
        "stored runs of a graph with other edges are taken for those of this one",
        "data/dataset.py",
        "for name, value in tensors(data)}",
        'for name, value in tensors(data) if "edge" not in name}',
        "data/test_csbm.py::test_fingerprint_is_the_same_on_every_machine",
    ),
    Fault(
        "a neighbour is drawn twice and counts double",
        "sampling/draws.py",
        "torch.where(taken, last, drawn)",
        "drawn",
        "sampling/test_reference.py::test_every_set_of_neighbours_is_equally_likely",
    ),
    Fault(
        "the reported epoch is chosen by test scores",
        "training/results.py",
        'metric.merit(columns["val"])',
        'metric.merit(columns["test"])',
        "training/test_results.py::test_the_score_is_that_of_the_first_best_epoch",
    ),
    Fault(
        "runs under one noise are taken for runs under another",
        "training/record.py",
        'content["condition"] = condition.facts',
        'content["condition"] = None',
        "comparison/sweeps/test_sweep.py"
        "::test_runs_under_noise_are_those_of_a_graph_with_that_noise",
    ),
    Fault(
        "scores under noise are given for clean features",
        "training/groups.py",
        'facts["condition"] = preparation.stored_condition',
        'facts["condition"] = None',
        "comparison/sweeps/test_sweep.py"
        "::test_runs_under_noise_are_those_of_a_graph_with_that_noise",
    ),
    Fault(
        "what is done to a model before a run is not done",
        "training/groups.py",
        "preparation.model(model, batches.batch.graph)",
        "pass",
        "training/test_groups.py::test_a_group_trains_the_model_that_was_changed_for_it",
    ),
    Fault(
        "a command that is given again trains everything again",
        "comparison/storage/store.py",
        "if not group.keys <= finished[group.study]:",
        "if group.keys:",
        "comparison/sweeps/test_sweep.py::test_sweeping_again_trains_nothing",
    ),
    Fault(
        "a kill leaves a part of a group, which is never completed",
        "comparison/storage/store.py",
        "self._transaction():\n            return",
        "self._user_errors():\n            return",
        "comparison/storage/test_store.py::test_a_group_is_stored_whole_or_not_at_all",
    ),
    Fault(
        "exporting one dataset deletes the rows of the others",
        "comparison/storage/export.py",
        "runs_as_csv([*kept, *runs])",
        "runs_as_csv(runs)",
        "comparison/storage/test_export.py"
        "::test_one_dataset_replaces_its_own_rows_only",
    ),
    Fault(
        "runs on one split count as independent, so noise looks like a difference",
        "comparison/results/from_runs.py",
        "by_split=split_count > 1)",
        "by_split=False)",
        "comparison/test_results.py::test_several_splits_are_paired_by_split_not_by_seed",
    ),
    Fault(
        "runs under noise are in the table of a comparison",
        "comparison/results/from_store.py",
        "return (run.device, run.numerics, run.condition)",
        "return (run.device, run.numerics, None)",
        "comparison/test_other_origins.py"
        "::test_stored_runs_under_noise_have_a_table_of_their_own",
    ),
    Fault(
        "the name of a graph is markup in its report",
        "comparison/html_report/assets/section.html",
        "{{ name }}</h2>",
        "{{ name|safe }}</h2>",
        "comparison/html_report/test_report.py::test_markup_in_names_opens_no_tag",
    ),
    Fault(
        "a script does not see that runs have failed",
        "cli/compare.py",
        "raise typer.Exit(1)",
        "raise typer.Exit(0)",
        "cli/test_compare.py::test_failed_runs_are_shown_and_exit_with_one",
    ),
    Fault(
        "a mistake ends in a traceback",
        "cli/application.py",
        '_fail(str(error), status, is_said=getattr(error, "is_said", False))',
        "raise",
        "cli/test_compare.py::test_a_mistake_ends_in_one_line_and_status_two",
    ),
)


def copy_project(folder: Path) -> None:
    """Copy what a fault may change; what tests only read is linked."""
    from tempergat.ops.cpu.library import library_path

    for path in ROOT.iterdir():
        if path.name in ("src", "tests"):
            shutil.copytree(path, folder / path.name)
        elif not path.name.startswith("."):
            (folder / path.name).symlink_to(path)
    if library_path().is_file():
        shutil.copy(library_path(), folder / PACKAGE / "ops" / "cpu")
    (folder / "sitecustomize.py").write_text(SITE)


def run_tests(folder: Path, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run tests of a copy on the package in it."""
    paths = os.pathsep.join(map(str, (folder, folder / "src")))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", *(f"tests/{t}" for t in tests)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )


def outcome(fault: Fault) -> str:
    """What the fault's test says to it; `caught` where all is well."""
    with tempfile.TemporaryDirectory() as name:
        copy_project(Path(name))
        path = Path(name) / PACKAGE / fault.file
        text = path.read_text() if path.is_file() else ""
        if text.count(fault.old) != 1:
            return f"HAS TO BE ADAPTED to {fault.file}"
        path.write_text(text.replace(fault.old, fault.new))
        found = run_tests(Path(name), [fault.test])
    if found.returncode == TESTS_FAILED:
        return "caught"
    return f"NOT CAUGHT by tests/{fault.test}"


def main() -> None:
    numbered = {str(number): fault for number, fault in enumerate(FAULTS, 1)}
    chosen = {word: numbered[word] for word in sys.argv[1:]} or numbered
    with tempfile.TemporaryDirectory() as name:
        copy_project(Path(name))
        found = run_tests(Path(name), sorted({f.test for f in chosen.values()}))
    if found.returncode:
        sys.exit(f"tests fail without any fault:\n{found.stdout}{found.stderr}")
    missed = 0
    for number, fault in chosen.items():
        what = outcome(fault)
        print(f"{number:>2} {fault.broken}: {what}", flush=True)
        missed += what != "caught"
    print(f"{len(chosen) - missed} of {len(chosen)} faults are caught")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
