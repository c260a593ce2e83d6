"""The variants of the noise study: methods, with theta decayed or not."""

from tempergat.nn import METHODS
from tempergat.training import Run, RunConfig


def decays_temperature(run: Run) -> bool | None:
    """Whether weight decay was applied to theta; None without temperature."""
    return _decays(run.method, run.config.get("decay_temperature"))


def variant_of(run: Run) -> str:
    """The method of a run, and whether its theta was not decayed."""
    return _name(run.method, decays_temperature(run))


def variant_of_config(config: RunConfig) -> str:
    """The variant that runs with these settings belong to."""
    return _name(config.method, _decays(config.method, config.decay_temperature))


def _decays(method: str, decay: bool | None) -> bool | None:
    known = METHODS.get(method)
    return decay if known is not None and known.temperature is not None else None


def _name(method: str, decay: bool | None) -> str:
    return f"{method}, theta undecayed" if decay is False else method
