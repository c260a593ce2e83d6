"""The table of pages that are made from results/."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tempergat.study.default_recipe import PLAN_FILE as DEFAULT_PLAN_FILE
from tempergat.study.default_recipe import default_json, reproduce_default
from tempergat.study.diagnose import (
    VALIDATION_CSV,
    VALIDATION_DATASETS,
    generated_graphs,
    reproduce_diagnose,
)
from tempergat.study.multiverse import multiverse_part
from tempergat.study.noise import load_plan
from tempergat.study.noise_findings import (
    CONFIRMATION,
    FIRST_STUDY,
    SECOND_STUDY,
    findings_json,
    reproduce_noise,
)
from tempergat.study.paper import (
    HETEROGENEOUS,
    HOMOGENEOUS,
    Reproduction,
    ranks_json,
    reproduce_heterogeneous,
    reproduce_homogeneous,
    reproduce_ranks,
    reproduction_json,
)
from tempergat.study.report import as_json as result_json
from tempergat.study.reproduce.default_runs import default_recipe_runs
from tempergat.study.reproduce.graph_runs import NoiseRuns, ValidationRuns, WhenRuns
from tempergat.study.reproduce.jobs import Job, Workspace
from tempergat.study.reproduce.method_runs import (
    RepeatedSearches,
    SearchTrials,
    calibration_runs,
    paper_runs,
    tuned_recipes,
)
from tempergat.study.reproduce.multiverse_runs import (
    joint_baselines,
    multiverse_variants,
)
from tempergat.study.reproduce.page import Page, Written
from tempergat.study.search import load_calibration, load_search, search_names
from tempergat.study.tuning import (
    CALIBRATION_CSV,
    TRIALS_FOLDER,
    TUNED_CSV,
    calibration_json,
    load_repeats,
    reproduce_calibration,
    reproduce_tuned,
)
from tempergat.study.when import (
    CSV_OF_STAGE,
    GENERATED,
    PLAN_FILE,
    reproduce_when,
    when_json,
)
from tempergat.study.when import load_plan as load_when_plan
from tempergat.training import SELECTION_RULES, load_recipe

_HOMOGENEOUS_CSV = "homogeneous.csv"
_HETEROGENEOUS_CSV = "heterogeneous.csv"
_MULTIVERSE_FILES = ("multiverse/plan.yaml", "multiverse/*.csv")


def _homogeneous_jobs(workspace: Workspace) -> Iterator[Job]:
    yield from _ranks_jobs(workspace)
    yield from multiverse_variants(workspace)


def _ranks_jobs(workspace: Workspace) -> Iterator[Job]:
    for dataset in HOMOGENEOUS:
        yield paper_runs(dataset, _HOMOGENEOUS_CSV, load_recipe(f"paper/{dataset}"))


def _heterogeneous_jobs(workspace: Workspace) -> Iterator[Job]:
    for dataset in HETEROGENEOUS:
        yield paper_runs(dataset, _HETEROGENEOUS_CSV, load_recipe(f"paper/{dataset}"))


def _calibration_jobs(workspace: Workspace) -> Iterator[Job]:
    plan = load_calibration()
    for dataset in plan.datasets:
        yield calibration_runs(dataset, CALIBRATION_CSV, plan)
    yield from joint_baselines(workspace)


def _tuned_jobs(workspace: Workspace) -> Iterator[Job]:
    for dataset in search_names():
        trials = f"{TRIALS_FOLDER}/{dataset}_trials.csv"
        yield SearchTrials(dataset, trials, load_search(dataset))
        # A recipe found by a search here takes precedence over the package's.
        found = tuned_recipes(workspace) / f"{dataset}.yaml"
        name = str(found) if found.exists() else f"tuned/{dataset}"
        yield paper_runs(dataset, TUNED_CSV, load_recipe(name))
    repeats = load_repeats(workspace.results)
    if repeats is not None:
        for dataset in repeats.graphs:
            yield RepeatedSearches(dataset, repeats)


def _diagnose_jobs(workspace: Workspace) -> Iterator[Job]:
    yield ValidationRuns("generated", tuple(generated_graphs()))
    for dataset in VALIDATION_DATASETS:
        yield ValidationRuns(dataset, (dataset,))


def _when_jobs(workspace: Workspace) -> Iterator[Job]:
    yield WhenRuns(GENERATED, CSV_OF_STAGE["generated"])
    for graph in load_when_plan(workspace.results).real.graphs:
        yield WhenRuns(graph.name, CSV_OF_STAGE["real"])


def _noise_jobs(workspace: Workspace) -> Iterator[Job]:
    plans = {FIRST_STUDY: load_plan()}
    for folder in (SECOND_STUDY, CONFIRMATION):
        file = workspace.results / folder / "plan.yaml"
        if file.exists():
            plans[folder] = load_plan(file)
    for folder, plan in plans.items():
        for dataset in plan.datasets:
            yield NoiseRuns(dataset, f"{folder}/{dataset}.csv", plan)


def _write_homogeneous(results: Path, docs: Path) -> Written:
    further = multiverse_part(results, docs)
    return _written(
        reproduce_homogeneous(results, docs, further.section, further.answer)
    )


def _write_heterogeneous(results: Path, docs: Path) -> Written:
    return _written(reproduce_heterogeneous(results, docs))


def _written(report: Reproduction) -> Written:
    lines = []
    for rule in SELECTION_RULES:
        outcomes = [
            claim.outcome
            for dataset in report.datasets
            for claim in dataset.claims_by_rule[rule]
            if claim.outcome is not None
        ]
        lines.append(
            f"{len(outcomes)} gains in the paper's table, {rule}: "
            f"{outcomes.count('holds')} hold, {outcomes.count('within noise')} within "
            f"noise, {outcomes.count('reversed')} reversed"
        )
    return Written(report.page, tuple(lines), reproduction_json(report))


def _write_ranks(results: Path, docs: Path) -> Written:
    report = reproduce_ranks(results, docs)
    lines = []
    for figure in report.figures:
        best, rank = next(iter(figure.table.average.items()))
        lines.append(
            f"{figure.title}: best {best} ({rank:.2f}), critical difference "
            f"{figure.table.critical_difference:.2f}"
        )
    lines += report.not_drawn
    lines.append(
        f"in {len(report.below)} of {report.compared} cells of the paper's tables a "
        "variant is below its backbone"
    )
    return Written(report.page, tuple(lines), ranks_json(report))


def _write_calibration(results: Path, docs: Path) -> Written:
    found, page = reproduce_calibration(results, docs)
    lines = []
    for one in found:
        settings = ", ".join(f"{k} {v}" for k, v in one.chosen.settings.items())
        lines.append(f"{one.dataset}: {settings} (misfit {one.chosen.misfit:.1f})")
    facts = calibration_json(found) | {"page": str(page)}
    return Written(page, tuple(lines), facts)


def _write_tuned(results: Path, docs: Path) -> Written:
    found, page = reproduce_tuned(results, docs)
    datasets = [{**result_json(one.result), "trials": one.trials} for one in found]
    return Written(
        page,
        tuple(f"{one.plan.dataset}: {one.verdict}" for one in found),
        {"datasets": datasets, "page": str(page)},
    )


def _write_noise(results: Path, docs: Path) -> Written:
    found = reproduce_noise(results, docs, load_plan())
    return Written(found.page, found.sentences, findings_json(found))


def _write_diagnose(results: Path, docs: Path) -> Written:
    report = reproduce_diagnose(results, docs)
    choices = [asdict(choice) for choice in report.choices]
    facts = {"choices": choices, "page": str(report.page)}
    return Written(report.page, (report.verdict,), facts)


def _write_when(results: Path, docs: Path) -> Written:
    report = reproduce_when(results, docs)
    return Written(report.page, report.sentences, when_json(report))


def _write_default(results: Path, docs: Path) -> Written:
    report = reproduce_default(results, docs)
    return Written(report.page, report.sentences, default_json(report))


PAGES = {
    page.name: page
    for page in (
        Page(
            "homogeneous",
            reads=(_HOMOGENEOUS_CSV, *_MULTIVERSE_FILES),
            writes=(
                "reproduction.md",
                "figures/homogeneous-gains.*",
                "figures/scores-*",
                "figures/multiverse.*",
            ),
            jobs=_homogeneous_jobs,
            write=_write_homogeneous,
        ),
        Page(
            "heterogeneous",
            reads=(_HETEROGENEOUS_CSV,),
            writes=(
                "heterogeneous.md",
                "figures/heterogeneous-gains.*",
                "figures/scores-*",
            ),
            jobs=_heterogeneous_jobs,
            write=_write_heterogeneous,
        ),
        Page(
            "ranks",
            reads=(_HOMOGENEOUS_CSV,),
            writes=("ranks.md", "figures/ranks-*"),
            jobs=_ranks_jobs,
            write=_write_ranks,
        ),
        Page(
            "calibration",
            reads=(CALIBRATION_CSV, *_MULTIVERSE_FILES),
            writes=("calibration.md", "figures/calibration.*"),
            jobs=_calibration_jobs,
            write=_write_calibration,
        ),
        Page(
            "tuned",
            reads=(f"{TRIALS_FOLDER}/*_trials.csv", TUNED_CSV, "tuned_variants/*"),
            writes=("tuned.md", "figures/tuned-*"),
            jobs=_tuned_jobs,
            write=_write_tuned,
        ),
        Page(
            "noise",
            reads=(f"{FIRST_STUDY}/*.csv", f"{SECOND_STUDY}/*", f"{CONFIRMATION}/*"),
            writes=("noise.md", "figures/noise-*"),
            jobs=_noise_jobs,
            write=_write_noise,
        ),
        Page(
            "diagnose",
            reads=(VALIDATION_CSV,),
            writes=("diagnose.md", "figures/diagnose-*"),
            jobs=_diagnose_jobs,
            write=_write_diagnose,
        ),
        Page(
            "when",
            reads=(PLAN_FILE, "when/*.csv"),
            writes=("when.md", "figures/when-*"),
            jobs=_when_jobs,
            write=_write_when,
        ),
        Page(
            "default",
            reads=(
                DEFAULT_PLAN_FILE,
                "default_recipe/second_plan.yaml",
                "default_recipe/**/*.csv",
            ),
            writes=("default.md", "figures/default-*"),
            jobs=default_recipe_runs,
            write=_write_default,
        ),
    )
}
