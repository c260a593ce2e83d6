"""Scores, differences and p-values as text."""


def percent(value: float | None, digits: int = 2) -> str:
    """A score as text; a dash for None."""
    return "-" if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 2) -> str:
    """A difference as text with its sign; a dash for None."""
    if value is None:
        return "-"
    text = f"{value:+.{digits}f}"
    return text if float(text) != 0.0 else f"{0:.{digits}f}"


def mean_and_std(mean: float | None, std: float | None) -> str:
    """`81.35 ± 0.95`, as the paper writes it."""
    return percent(mean) if std is None else f"{percent(mean)} ± {percent(std)}"


def p_value(p: float | None) -> str:
    """A p-value with three decimals; below that `<0.001`."""
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"
