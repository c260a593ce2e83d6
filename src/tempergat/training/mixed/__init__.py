"""Runs with different learning rates, weight decays and splits, trained at once."""

from tempergat.training.mixed.training import MixedRun, train_mixed

__all__ = ["MixedRun", "train_mixed"]
