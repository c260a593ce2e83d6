"""docs/noise.md: what both studies of controlled noise have found."""

from tempergat.study.noise_findings.confirmation import CONFIRMATION
from tempergat.study.noise_findings.page import (
    FIRST_STUDY,
    SECOND_STUDY,
    NoiseFindings,
    findings_json,
    reproduce_noise,
)

__all__ = [
    "CONFIRMATION",
    "FIRST_STUDY",
    "SECOND_STUDY",
    "NoiseFindings",
    "findings_json",
    "reproduce_noise",
]
