"""`tempergat theory`: the paper's two theorems, closed forms and simulation."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempergat.cli.options.help_text import examples
from tempergat.cli.options.shared import Json, require_writable
from tempergat.cli.ui.json_output import print_json
from tempergat.cli.ui.stopping import exit_status

if TYPE_CHECKING:
    from tempergat.theory import Report


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog=examples(
            "tempergat theory --quick",
            "tempergat theory --out my/theory",
        )
    )(theory)


def theory(
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Fewer targets: half a minute, wider intervals."),
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for the tables, and figures/ inside it.")
    ] = Path("tempergat-out/theory"),
    as_json: Json = False,
) -> None:
    """Check both theorems by closed forms and simulation."""
    require_writable(out)

    from tempergat.base import replace_non_finite
    from tempergat.cli.ui.tables import error_console, output_console
    from tempergat.theory import FULL, QUICK, analyse, write_tables
    from tempergat.theory.figures import draw_figures

    progress = error_console()
    try:
        report = analyse(
            QUICK if quick else FULL,
            progress=lambda part: progress.print(f"{part} ..."),
        )
    except KeyboardInterrupt as stop:
        progress.print("Stopped; nothing was written.")
        raise typer.Exit(exit_status(stop)) from stop
    files = write_tables(report.tables, out)
    files += draw_figures(report.tables, out / "figures")
    if as_json:
        content = {
            "verdicts": report.verdicts,
            "tables": report.tables,
            "files": [str(file) for file in files],
        }
        print_json(replace_non_finite(content, str))
        return
    console = output_console()
    _print_best(console, report)
    for line in report.verdicts:
        console.print(f"- {line}")
    console.print(f"wrote {len(files)} files under {out}")


def _print_best(console: Any, report: "Report") -> None:
    """Prints the best temperature at each noise level."""
    from tempergat.cli.ui.tables import layout

    rows = [
        (
            f"{row['sigma']:g}",
            f"{row['best_temperature']:.3g}",
            f"[{row['best_temperature_low']:.3g}, {row['best_temperature_high']:.3g}]",
            f"{row['weak_logit_best']:.3g}",
            f"{row['best_snr']:.3g}",
            f"{row['snr_at_one']:.3g}",
            "yes" if row["one_is_good"] else "no",
        )
        for row in report.tables["best_temperature"]
    ]
    columns = (
        "sigma",
        "best T",
        "95 % interval",
        "closed form",
        "best SNR",
        "SNR(1)",
        "T = 1 is good",
    )
    console.print(layout(columns, rows, console.width))
