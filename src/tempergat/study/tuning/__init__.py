"""Searching for settings: tuning, and calibration against the paper's baselines."""
