"""The studies: what they ask, their pages, and the runs they lack.

python -m studies                       lists the studies
python -m studies NAME                  fills the page and draws its figures
python -m studies table3                the study of an item of the paper; also figure4
                                        and theorem1
python -m studies NAME --run            trains what is missing first
python -m studies NAME --run GRAPH ...  on these graphs alone
python -m studies NAME --run GRAPH ... --set heads=4 --methods gat,temp_gated --runs 3
                                        with other settings, methods or seeds; no result
                                        of the study changes
python -m studies noise GRAPH           tables and the paper's figure 4 of a graph that
                                        is not in its plan
"""

import argparse
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from studies.pages import DOCS, fill
from studies.paper import DATASETS, study_of
from studies.results import STUDIES, datasets_with_rows, read_plan, row_count
from tempergat.base import UserError, write_text
from tempergat.base.figures import save_figure
from tempergat.training import OPTIONS, help_of, make_overrides, typed_as

if TYPE_CHECKING:
    from rich.console import Console

    from studies.runner import Changes
    from tempergat.comparison.sweeps.state import OnProgress, Progress


def names() -> list[str]:
    """The studies, those of the paper first."""
    found = {path.parent.name for path in STUDIES.glob("*/plan.yaml")}
    first = ["homogeneous", "heterogeneous", "ranks", "noise", "theory"]
    return [*[n for n in first if n in found], *sorted(found - {*first})]


def list_studies() -> None:
    """Prints what each study asks, how much of it has run, and the time it takes."""
    for name in names():
        plan = read_plan(name)
        rows = row_count(name)
        state = f"{rows:,} of {plan['rows']:,} rows" if plan["rows"] else "no rows"
        if name in DATASETS:
            state = f"{_datasets_done(name)}; {state}"
        print(f"{name:<14} {plan['question']}")
        print(f"{'':<14} {state}; {plan['time']}")


def _datasets_done(name: str) -> str:
    """How many of the paper's datasets have rows, and how many other graphs."""
    found = datasets_with_rows(name)
    others = found.difference(DATASETS[name])
    done = f"{len(found - others)} of {len(DATASETS[name])} datasets"
    return f"{done}; proxy: {len(others)} graphs" if others else done


def fill_page(name: str) -> None:
    """Fills the page of a study and draws its figures."""
    made = _part(name, "tables")
    if made is None:
        print(f"{name} has no page")
        return
    page = DOCS / f"{made.PAGE}.md"
    try:
        text = fill(page.read_text(encoding="utf-8"), made.TABLES, made.NUMBERS)
    except FileNotFoundError as error:
        raise UserError(
            f"{error.filename} is missing; a page is written by hand, and "
            f"`python -m studies {name} --run` makes the results"
        ) from None
    write_text(page, text)
    for figure, draw in made.FIGURES.items():
        save_figure(draw(), DOCS / "figures" / figure, [".svg"])
    print(f"filled {page}")


def train(
    name: str, graphs: list[str], device: str, out: Path, changes: "Changes"
) -> bool:
    """Trains what the results of a study lack; returns whether all could be trained."""
    from studies.runner import Runner
    from tempergat.cli.options.shared import parse_device
    from tempergat.cli.ui.tables import SafeConsole
    from tempergat.comparison.storage.store import Store

    study = _part(name, "study")
    if study is None:
        raise UserError(f"{name} has no runs of its own; its page is made from others'")
    if changes and not hasattr(study, "look"):
        raise UserError(
            f"{name} has one plan, and takes no other settings, methods or seeds; "
            "homogeneous, heterogeneous and noise do"
        )
    for graph in graphs:
        if graph not in study.GRAPHS and not hasattr(study, "TAKES_ANY_GRAPH"):
            known = ", ".join(study.GRAPHS) or "none"
            raise UserError(f"{name} has no graph {graph!r}; there are {known}")
    if hasattr(study, "run"):
        study.run(STUDIES / name / "results")
        return True
    console = SafeConsole(stderr=True)
    is_whole = True
    with Store(out / "store.sqlite") as store:
        runner = Runner(
            store,
            parse_device(device),
            lambda graph: _progress_lines(console, graph),
        )
        for graph in graphs or study.GRAPHS:
            try:
                if _has_no_page(study, graph, changes):
                    text = study.look(graph, runner, changes)
                    path = out / f"{name}_{Path(graph).stem}.md"
                    write_text(path, text)
                    files = [path]
                    if hasattr(study, "draw") and (
                        figure := study.draw(graph, runner, changes)
                    ):
                        files += save_figure(figure, path.with_suffix(""))
                    print(f"{text}\nwritten to {', '.join(map(str, files))}")
                else:
                    print(f"{graph}: {runner.run(study.stages(graph)):,} runs")
            except UserError as error:
                # One graph that cannot be had does not hold up the others.
                print(f"{graph}: not complete: {error}", file=sys.stderr)
                is_whole = False
    return is_whole


def _progress_lines(console: "Console", graph: str) -> "OnProgress":
    """A callback that prints a line about a graph after every group of runs."""
    from tempergat.comparison.display import runs_done, time_left

    shown: int | None = None

    def show(progress: "Progress") -> None:
        nonlocal shown
        if progress.new or (shown is not None and progress.runs_done > shown):
            console.print(f"{graph}: {runs_done(progress)}{time_left(progress)}")
        shown = progress.runs_done

    return show


def main() -> int:
    """Runs the command; returns its exit status."""
    usage = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m studies", None, __doc__, None, [], usage
    )
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("graphs", nargs="*", metavar="GRAPH")
    parser.add_argument("--run", action="store_true", help="train what is missing")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--out", type=Path, default=Path("tempergat-out/studies"))
    parser.add_argument("--datasets", type=_words, default=[], help="as GRAPH ...: a,b")
    parser.add_argument("--methods", type=_words, default=[], help="these alone: a,b")
    parser.add_argument("--runs", type=int, help="seeds, in place of the plan's")
    for name in OPTIONS:
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=typed_as(name), help=help_of(name))
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="any setting"
    )
    given = parser.parse_intermixed_args()
    if given.name is None:
        list_studies()
        return 0
    graphs = [*given.graphs, *given.datasets]
    is_whole = True
    try:
        given.name = study_of(given.name, names())
        changes = _changes(given)
        study = _part(given.name, "study")
        has_tables_only = False
        if given.run or graphs or changes:
            is_whole = train(given.name, graphs, given.device, given.out, changes)
            trained = graphs or getattr(study, "GRAPHS", [])
            has_tables_only = any(_has_no_page(study, g, changes) for g in trained)
        if not has_tables_only:
            fill_page(given.name)
    except UserError as error:
        print(f"studies: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; finished runs are kept", file=sys.stderr)
        return 130
    return 0 if is_whole else 1


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _changes(given: argparse.Namespace) -> "Changes":
    from studies.runner import Changes

    if given.runs is not None and given.runs < 1:
        raise UserError(f"--runs is {given.runs}; give a whole number of at least 1")
    values = {name: getattr(given, name) for name in OPTIONS}
    asked = {name: value for name, value in values.items() if value is not None}
    overrides = make_overrides(asked, written=given.set)
    return Changes(overrides, given.methods, given.runs)


def _has_no_page(study: ModuleType | None, graph: str, changes: "Changes") -> bool:
    """Whether tables of a graph are printed, because no page of a study holds them."""
    if not hasattr(study, "look"):
        return False
    return bool(changes) or graph not in getattr(study, "ON_PAGE", study.GRAPHS)


def _part(name: str, part: str) -> ModuleType | None:
    if not (STUDIES / name / f"{part}.py").exists():
        return None
    return importlib.import_module(f"studies.{name}.{part}")


if __name__ == "__main__":
    sys.exit(main())
