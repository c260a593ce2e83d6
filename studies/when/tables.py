"""Tables, numbers and the picture of docs/when.md."""

import math
from collections.abc import Callable
from functools import partial

from studies.pages import markdown_table, p_value, signed
from studies.when import analysis
from studies.when.analysis import BACKBONES, across, count, families, graphs, runs
from studies.when.arms import ARMS
from studies.when.figures import gains_figure
from tempergat.stats import wilcoxon_p

PAGE = "when"

_USED = {
    "residual-plain": "a residual (`residual=True`)",
    "post_gate-plain": 'the gate on the output (`gate="post"`)',
    "post_gate_residual-residual": "the gate on the output, beside a residual",
    "gate_first-plain": 'the gate before attention (`gate="first"`)',
    "temperature-plain": 'a temperature (`temperature="layer"`)',
}
_USED_ON = {
    "up_to_chance": "generated, neighbours share a class no more often than by chance",
    "above_chance": "generated, neighbours share a class more often",
    "real": "real graphs, settings searched",
}
_COMPARED = {
    "residual-plain": "residual - plain",
    "post_gate-plain": "gate on the output - plain",
    "neighbour_gate-plain": "gate fed by neighbours - plain",
    "constant_gate-plain": "constant gate - plain",
    "post_gate-residual": "gate on the output - residual",
    "post_gate_residual-residual": "gate and residual - residual",
    "post_gate-neighbour_gate": "gate on the output - gate fed by neighbours",
    "post_gate-constant_gate": "gate on the output - constant gate",
    "temperature-plain": "temperature - plain",
}


def use_this() -> str:
    """What to add to the plain backbone, by kind of graph."""
    rows = [
        [words, *(_use(kind, c) for kind in _USED_ON)] for c, words in _USED.items()
    ]
    return markdown_table(["add", *_USED_ON.values()], rows)


def _use(kind: str, contrast: str) -> str:
    """The verdict on an arm, and its numbers with both backbones."""
    tests = {b: across(kind, b).loc[contrast] for b in BACKBONES}
    better = [count("better", kind, b, contrast) for b in BACKBONES]
    worse = [count("worse", kind, b, contrast) for b in BACKBONES]
    helps = [b for b, test in tests.items() if test.better and not test.same]
    advice = "not shown to help"
    if len(helps) == len(tests):
        advice = "yes"
    elif all(test.worse or test.same for test in tests.values()):
        advice = "no"
    elif helps:
        advice = f"with {helps[0]} only"
    elif not any(test.worse for test in tests.values()) and all(better):
        if all(worse):
            advice = "depends on the graph"
        elif not any(worse):
            advice = "on some graphs"
    points = " / ".join(gain(kind, b, contrast) for b in BACKBONES)
    counts = "{}/{} better, {}/{} worse".format(*better, *worse)
    return f"**{advice}**: {points}; {counts} of {len(graphs(kind))}"


def side(kind: str) -> str:
    """Pairs of arms on the real graphs on one side of the threshold."""
    size, divided = len(graphs(kind)), len(families(kind, "gat", "residual-plain"))
    head = [f"{kind}: {size} graphs of {divided} families"]
    for backbone in BACKBONES:
        head += [f"{backbone}: mean, median (families)", "gain", "better, worse"]
    rows = []
    for contrast, words in _COMPARED.items():
        row = [words]
        for backbone in BACKBONES:
            case = kind, backbone, contrast
            found = families(*case)
            ends = f"{signed(found.min())} to {signed(found.max())}"
            gaining = f"{(found > 0.0).sum()} of {len(found)}"
            row += [f"{gain(*case)}, {median(*case)} ({ends})", gaining, "-"]
            if contrast in analysis.CONTRASTS:
                row[-1] = f"{count('better', *case)}, {count('worse', *case)} of {size}"
        rows.append(row)
    return markdown_table(head, rows)


def failed_runs() -> str:
    """The arms and real graphs with runs that failed to train."""
    head = ["graph", "backbone", "arm", "failed", "points over plain, all runs"]
    rows = []
    for (graph, backbone, arm), seeds in analysis.failed_seeds().items():
        gains = analysis.pairs(backbone, f"{arm}-plain")[graph]
        points = [signed(gains.mean()), signed(gains.drop(seeds).mean())]
        rows.append([graph, backbone, arm, f"{len(seeds)} of {len(gains)}", *points])
    return markdown_table([*head, "without the failed ones"], rows)


def real_graphs() -> str:
    """The gains on every real graph; a star where the test within it shows one."""
    head = ["graph", "adjusted homophily"]
    for backbone in BACKBONES:
        head += [f"{backbone}: plain", "residual", "gate", "temperature"]
    rows = []
    for graph, homophily in graphs("real").items():
        row = [graph, f"{homophily:.2f}"]
        for backbone in BACKBONES:
            row.append(f"{analysis.scores()['plain'][backbone, graph].mean():.1f}")
            for arm in ("residual", "post_gate", "temperature"):
                case = graph, backbone, f"{arm}-plain"
                star = "" if count("within noise", *case) else "*"
                failed = (graph, backbone, arm) in analysis.failed_seeds()
                row.append(f"{gain(*case)}{star}{'†' if failed else ''}")
        rows.append(row)
    return markdown_table(head, rows)


def _held(backbone: str) -> dict[str, bool]:
    """Whether each condition of the plan's claim about the gate holds."""
    tests = across("up_to_chance", backbone)
    no_gain = tests["worse"] | tests["same"]
    share = analysis.PLAN["bounds"]["shared_gain"]
    words = f"gains less than {share:g} times the gate's gain"
    less = tests["points"] < share * tests["points"]["post_gate-plain"]
    beside, on_top = "post_gate-residual", "post_gate_residual-residual"
    return {
        "the gate gains over plain": tests["better"]["post_gate-plain"],
        "the residual is better than the gate, or equivalent": no_gain[beside],
        "the gate adds nothing to the residual": no_gain[on_top],
        f"the gate fed by neighbours {words}": less["neighbour_gate-plain"],
        f"the constant gate {words}": less["constant_gate-plain"],
    }


def conditions() -> str:
    """The conditions of the plan's claim about the gate."""
    held = [_held(backbone) for backbone in BACKBONES]
    rows = [[words, *("yes" if h[words] else "no" for h in held)] for words in held[0]]
    return markdown_table(["condition", *BACKBONES], rows)


def arms() -> str:
    """What each arm adds, and its parameters."""
    generated = runs().query("stage == 'generated'")
    sizes = generated.groupby(["arm", "backbone"])["parameter_count"].first()
    rows = [
        [name, arm.words, *(f"{sizes[name, backbone]:.0f}" for backbone in BACKBONES)]
        for name, arm in ARMS.items()
    ]
    head = [f"parameters, {backbone}" for backbone in BACKBONES]
    return markdown_table(["arm", "what it adds", *head], rows)


def gain(kind: str, backbone: str, contrast: str, digits: str = "1") -> str:
    """The mean difference of two arms over families of graphs."""
    return signed(families(kind, backbone, contrast).mean(), int(digits))


def median(kind: str, backbone: str, contrast: str) -> str:
    """The median difference of two arms over families of graphs."""
    return signed(families(kind, backbone, contrast).median())


def both(number: Callable[..., object], kind: str, *arguments: str) -> str:
    """A number with each backbone: `+1.0 and +2.0`."""
    return " and ".join(str(number(kind, b, *arguments)) for b in BACKBONES)


def failed(stage: str, *arms: str) -> str:
    """How many runs failed to train, of some arms or of all."""
    chosen = (runs()["stage"] == stage) & runs()["arm"].isin(arms or [*ARMS])
    return f"{runs()['failed'][chosen].sum() or 'none'} of {chosen.sum():,}"


def failed_bounds() -> str:
    """The bounds that give the same failed runs on real graphs."""
    real = runs().query("stage == 'real'").groupby("failed")["shortfall"]
    kept, lost = real.max()[False], real.min()[True]
    return f"{math.ceil(10 * kept) / 10:.1f} to {math.floor(10 * lost) / 10:.1f}"


def conditions_held(*backbones: str) -> str:
    """How many of the conditions hold, with some backbones or with all."""
    held = [h for b in backbones or BACKBONES for h in _held(b).values()]
    return f"{sum(held)} of {len(held)}"


def correlation(backbone: str) -> str:
    """That of the gate's gain and the residual's, over all generated graphs."""
    gate = families("generated", backbone, "post_gate-plain")
    return f"{gate.corr(families('generated', backbone, 'residual-plain')):.2f}"


_TABLES = (use_this, side, failed_runs, real_graphs, conditions, arms)
TABLES = {table.__name__: table for table in _TABLES}
NUMBERS = {
    "gains": partial(both, gain),
    "medians": partial(both, median),
    "p": lambda kind, b, contrast: p_value(across(kind, b)["p"][contrast]),
    "failed": failed,
    "failed_bounds": failed_bounds,
    "conditions_held": conditions_held,
    "correlation": correlation,
    "rule_gain": lambda: signed(analysis.rule_gains().mean(), 2),
    "rule_p": lambda: p_value(wilcoxon_p(analysis.rule_gains())),
}
FIGURES = {"when-gains": gains_figure}
