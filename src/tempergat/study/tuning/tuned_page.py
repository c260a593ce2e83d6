"""docs/tuned.md: the searched settings and their test scores."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tempergat.base import UserError, write_into
from tempergat.stats import PairedComparison
from tempergat.study.engine import Run, read_runs
from tempergat.study.paper import BACKBONE_OF, PAPER_METHODS, PLAIN_METHODS
from tempergat.study.report import as_markdown, filled, markdown_rows, result_table
from tempergat.study.results import DatasetResult, dataset_result
from tempergat.study.search import (
    SearchPlan,
    load_search,
    search_names,
)
from tempergat.study.tuning import figures
from tempergat.study.tuning.repeats import (
    RepeatedGraph,
    load_repeats,
    read_repeats,
)
from tempergat.study.tuning.repeats_section import (
    best_in_any_search,
    repeats_answer,
    repeats_section,
)
from tempergat.study.tuning.searching import read_trials
from tempergat.study.tuning.variants import TunedVariants, read_variants
from tempergat.study.tuning.variants_section import (
    Best,
    search_caveat,
    variants_answer,
    variants_section,
)

TUNED_CSV = "tuned.csv"
TRIALS_FOLDER = "tuning"
_FIGURE = "tuned-gains"


@dataclass(frozen=True)
class TunedResult:
    """The result of a search on one dataset.

    Attributes:
        plan: The search.
        trials: The best trial of each backbone, as a line of its table.
        result: Test scores of all methods with the settings found.
        collapsed: How many runs of each method end with less than half of the
            training nodes classified correctly.
    """

    plan: SearchPlan
    trials: dict[str, dict[str, str]]
    result: DatasetResult
    collapsed: dict[str, int]

    @property
    def verdict(self) -> str:
        """The best method and the score that was expected, in a sentence."""
        best = max(self.result.results, key=lambda r: r.summary.mean or 0.0)
        mean = best.summary.mean or 0.0
        sentence = f"Best mean: {best.method}, {mean:.2f}"
        if self.plan.expected is None:
            return f"{sentence}."
        short = self.plan.expected - mean
        outcome = f"{short:.2f} below that" if short > 0 else "reached"
        return f"{sentence}; about {self.plan.expected:g} was expected: {outcome}."

    @property
    def warning(self) -> str:
        """Which methods collapse with their backbone's settings; empty if none does."""
        if not self.collapsed:
            return ""
        counts = ", ".join(f"{m} {n}" for m, n in self.collapsed.items())
        return (
            "\nRuns that end with less than half of the training nodes classified "
            f"correctly: {counts}. These runs do not overfit; they collapse. With the "
            "backbone's settings the loss stays near that of guessing, and weight "
            "decay drives the weights to zero.\n"
        )


def reproduce_tuned(results: Path, docs: Path) -> tuple[tuple[TunedResult, ...], Path]:
    """Write docs/tuned.md and its figure.

    Args:
        results: The project's folder of results. From results/tuned_variants/ come
            methods with a search of their own, from results/tuning/ and
            results/tuned.csv those with the settings of their backbone.
        docs: Where the page goes.

    Returns:
        What was found on each dataset that was run, and where the page is.

    Raises:
        UserError: A file is missing, or runs have other settings than those found.
    """
    runs = read_runs(results / TUNED_CSV)
    found = []
    for name in search_names():
        of_one = [run for run in runs if run.dataset == name]
        if of_one:
            table = results / TRIALS_FOLDER / f"{name}_trials.csv"
            found.append(_tuned(load_search(name), of_one, read_trials(table)))
    if not found:
        raise UserError(
            f"{results / TUNED_CSV} has no run on {', '.join(search_names())}; train "
            "some with `tempergat reproduce tuned --run`"
        )
    page = docs / "tuned.md"
    devices = ", ".join(sorted({run.device for run in runs}))
    variants = read_variants(results)
    has_own = variants is not None and bool(variants.graphs)
    repeats = load_repeats(results)
    repeated = {} if variants is None else read_repeats(results, variants.graphs)
    figures.tuned_figure(_series(found, variants, repeated), docs / "figures" / _FIGURE)
    text = ["# Tuned methods\n"]
    if variants is not None and has_own:
        caveat = search_caveat(
            variants, best_in_any_search(variants, repeated), _best_backbones(found)
        )
        further = repeats_answer(repeats, repeated, variants)
        # Several searches say more than one does.
        text += [further] if repeated else []
        text += [variants_answer(variants), caveat]
        text += [] if repeated else [further]
    else:
        text.append(_answer(found) + _NOT_RUN)
    text += [
        f"![Variants against their tuned backbone](figures/{_FIGURE}.svg)\n",
        "Mean difference from the tuned backbone over paired seeds, with 95 % "
        f"intervals{_OVER_SEARCHES if repeated else ''}; arrows are further left.\n",
        _ORIGIN,
    ]
    if variants is not None:
        text.append(variants_section(variants))
    if repeats is not None and repeated:
        text.append(repeats_section(repeats, repeated))
    text += [
        _first_search(found, devices, has_answer=has_own),
        *(_section(one) for one in found),
    ]
    write_into(page.parent, page.name, filled("\n".join(text)))
    return tuple(found), page


def _series(
    found: Sequence[TunedResult],
    variants: TunedVariants | None,
    repeated: Mapping[str, RepeatedGraph],
) -> dict[str, dict[str, list[PairedComparison]]]:
    """The comparisons to draw, by name and graph."""
    series = {}
    if variants is not None and variants.graphs:
        series["with settings of its own"] = {
            name: graph.comparisons for name, graph in variants.graphs.items()
        }
    series["with the settings of its backbone"] = _comparisons(found)
    if repeated:
        series["mean over several searches"] = {
            name: list(one.over_searches.values()) for name, one in repeated.items()
        }
    return series


def _tuned(
    plan: SearchPlan, runs: Sequence[Run], lines: Sequence[dict[str, str]]
) -> TunedResult:
    best: dict[str, dict[str, str]] = {}
    for backbone in PLAIN_METHODS:
        scored = [
            line
            for line in lines
            if line["backbone"] == backbone and line["failed"] == "0"
        ]
        if not scored:
            raise UserError(
                f"the table of trials on {plan.dataset} has none of {backbone}; run "
                "`tempergat reproduce tuned --run`"
            )
        best[backbone] = max(scored, key=lambda line: float(line["val_mean"]))
        _refuse_other_settings(plan, best[backbone], runs)
    # All searched datasets are scored by accuracy.
    result = dataset_result(runs, PAPER_METHODS, BACKBONE_OF)
    collapsed = Counter(
        run.method
        for run in runs
        if run.status == "done" and run.scores["last_epoch"].train < 0.5
    )
    return TunedResult(plan, best, result, dict(collapsed))


def _refuse_other_settings(
    plan: SearchPlan, trial: dict[str, str], runs: Sequence[Run]
) -> None:
    backbone = trial["backbone"]
    for run in runs:
        if BACKBONE_OF.get(run.method, run.method) != backbone:
            continue
        for name, value in trial.items():
            if name in run.config and value != "" and str(run.config[name]) != value:
                raise UserError(
                    f"{run.method} ran on {plan.dataset} with {name} "
                    f"{run.config[name]}, but the search found {value}; run "
                    f"`tempergat compare` with recipe tuned/{plan.dataset} again"
                )


def _comparisons(found: Sequence[TunedResult]) -> dict[str, list[PairedComparison]]:
    return {
        one.result.dataset: [
            r.comparison for r in one.result.results if r.comparison is not None
        ]
        for one in found
    }


def _best_backbones(found: Sequence[TunedResult]) -> dict[str, Best]:
    best = {}
    for tuned in found:
        plain = [one for one in tuned.result.results if one.method in PLAIN_METHODS]
        top = max(plain, key=lambda one: one.summary.mean or 0.0)
        best[tuned.result.dataset] = (top.method, top.summary.mean or 0.0)
    return best


def _answer(found: Sequence[TunedResult]) -> str:
    """What the search per backbone found."""
    best = []
    for tuned in found:
        top = max(tuned.result.results, key=lambda r: r.summary.mean or 0.0)
        best.append(f"{top.summary.mean:.1f} on {tuned.plan.dataset} ({top.method})")
    verdicts = [c.verdict for of_one in _comparisons(found).values() for c in of_one]
    counts = Counter(verdicts)
    return (
        f"With settings searched for each backbone, the best methods reach "
        f"{', '.join(best)}. Of {len(verdicts)} variants with the settings of their "
        f"backbone, {counts['better']} are better than it, "
        f"{counts['within noise']} within noise and {counts['worse']} worse."
    )


_NOT_RUN = (
    " The variants had no search of their own: that is planned in "
    "results/tuned_variants/ and was not run; `tempergat compare cora citeseer pubmed "
    "--tune 30 --runs 50` runs it.\n"
)
_OVER_SEARCHES = " (over searches, where there are several)"
_ORIGIN = (
    "`tempergat reproduce tuned` makes this page from results/tuned_variants/, "
    "results/tuning/ and results/tuned.csv.\n"
)


def _first_search(
    found: Sequence[TunedResult], devices: str, *, has_answer: bool
) -> str:
    # Where it is the only search, its answer is at the top of the page.
    answer = f"{_answer(found)} " if has_answer else ""
    return (
        "## The search for each backbone\n\n"
        f"{answer}This came first, and is how recipes/tuned were found: "
        "settings were searched for gcn, gat and gatv2 alone by mean validation "
        "accuracy (Optuna's TPE with a fixed seed), and the variants of a backbone use "
        "its settings unchanged. The search space, the number of trials and the seeds "
        "were fixed beforehand in src/tempergat/searches/. Test scores were computed "
        f"once, afterwards, over seeds from 0 on, on {devices}.\n"
    )


def _section(tuned: TunedResult) -> str:
    plan = tuned.plan
    settings = list(
        dict.fromkeys(
            name
            for block in plan.space.values()
            for name, values in block.items()
            if len(values) > 1
        )
    )
    rows = [
        [
            backbone,
            *(line.get(name) or "-" for name in settings),
            f"{float(line['val_mean']):.2f}",
        ]
        for backbone, line in tuned.trials.items()
    ]
    seeds = plan.run_seeds
    return (
        f"### {plan.dataset}, settings of the backbone\n\n"
        f"The best of {plan.trials} trials of each backbone, over seeds {seeds.start} "
        f"to {seeds.stop - 1}:\n\n"
        + markdown_rows(["backbone", *settings, "validation"], rows)
        + f"\n{tuned.verdict}\n\n"
        + as_markdown(result_table(tuned.result))
        + tuned.warning
    )
