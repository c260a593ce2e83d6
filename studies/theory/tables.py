"""The tables, the numbers and the figures of docs/theory.md."""

from functools import partial

import pandas as pd

from studies.results import read_csv
from studies.theory import figures
from studies.theory.expansion import largest_weak_logit_gain
from studies.theory.model import standard_setting

PAGE = "theory"


def read(name: str) -> pd.DataFrame:
    """A table of the analysis."""
    return read_csv(f"theory/{name}.csv")


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table whose columns are all aligned to the left."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines)


def interval(row: pd.Series, name: str, form: str) -> str:
    """An estimate with its 95 % interval."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{row[name]:{form}} [{low:{form}}, {high:{form}}]"


def best_temperature() -> str:
    """The best temperature at each noise level."""
    head = ["sigma", "best T (95 %)", "second order"]
    head += ["best SNR", "SNR(1)", "SNR(1)/best"]
    rows = [
        [
            f"{row['sigma']:g}",
            interval(row, "best_temperature", ".3g"),
            f"{row['weak_logit_best']:.3g}".replace("inf", "none"),
            f"{row['best_snr']:.3g}",
            f"{row['snr_at_one']:.3g}",
            f"{row['share_at_one']:.2f}",
        ]
        for _, row in read("best_temperature").iterrows()
    ]
    return markdown(head, rows)


def gates() -> str:
    """Label SNR and SNR of the output at rho = 0.5, with and without gates."""
    found = read("gate_curves").query("rho == 0.5")
    found = found.set_index(["tau", "temperature", "variant"])
    rows = []
    for temperature in (1.0, 4.0):
        for tau in (0.0625, 0.25, 1.0, 4.0):
            row = [f"{tau:g}", f"{temperature:g}"]
            for variant in figures.VARIANTS:
                cell = found.loc[tau, temperature, variant]
                row.append(f"{cell['snr']:.3g} ({cell['readout_snr']:.3g})")
            rows.append(row)
    head = ["tau", "T", "no gate", "gate first", "gate after attention"]
    return markdown(head, rows)


def boundary() -> str:
    """The noise below which the oracle gate lowers the SNR."""
    rows = []
    for rho, found in read("gate_boundary").groupby("rho"):
        one, four = (found[found["temperature"] == t].iloc[0] for t in (1, 4))
        cells = [interval(row, "tau_star", ".3f") for row in (one, four)]
        rows.append([f"{rho:g}", *cells, f"{one['tau_star_weak_logit']:.3f}"])
    head = ["rho", "tau* at T = 1 (95 %)", "T = 4 (95 %)", "second order"]
    return markdown(head, rows)


def learned(*noise: str) -> str:
    """What trained layers learn under one noise, whose name may have blanks."""
    found = read("learned")
    found = found[found["noise"] == " ".join(noise)]
    rows = [
        [
            row["variant"].replace("_", " "),
            f"{row['temperature']:.2f}",
            interval(row, "snr", ".2f"),
            f"{row['snr_best_temperature']:.2g}",
            f"{row['accuracy']:.3f}",
            f"{row['gate_observed']:.3f}".replace("nan", ""),
            f"{row['gate_lost']:.3f}".replace("nan", ""),
        ]
        for _, row in found.iterrows()
    ]
    head = ["variant", "T", "label SNR", "best T for SNR", "accuracy"]
    return markdown([*head, "gate, observed", "gate, lost"], rows)


def holding() -> str:
    """How many checks of the proofs hold."""
    return str((read("proof_steps")["verdict"] == "holds").sum())


def value(table: str, column: str, form: str, *where: str) -> str:
    """One number of a table, in the row that conditions like `sigma=2` leave.

    A `+` in a condition is a blank.
    """
    found = read(table)
    for condition in where:
        name, _, wanted = condition.partition("=")
        wanted = wanted.replace("+", " ")
        is_text = not pd.api.types.is_numeric_dtype(found[name])
        found = found[found[name] == (wanted if is_text else float(wanted))]
    (number,) = found[column]
    return f"{number:{form}}".replace("%", " %")


def good_sigmas(end: str) -> str:
    """The least or the most of the noise levels at which T = 1 is good."""
    best = read("best_temperature").query("one_is_good == 'yes'")["sigma"]
    return f"{best.min() if end == 'least' else best.max():g}"


def weak_gain(rho: str) -> str:
    """The most that the gate gains where logits are weak, in percent of the SNR."""
    share = largest_weak_logit_gain(standard_setting(), float(rho))
    return f"{100 * share:.2g} %"


TABLES = {
    "best_temperature": best_temperature,
    "gates": gates,
    "boundary": boundary,
    "learned": learned,
}
NUMBERS = {
    "holding": holding,
    "value": value,
    "good_sigmas": good_sigmas,
    "weak_gain": weak_gain,
}
FIGURES = {
    f"theory/{name}": partial(lambda draw, table: draw(read(table)), draw, table)
    for name, (draw, table) in figures.FIGURES.items()
}
