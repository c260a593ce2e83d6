"""Controlled noise on the features: what temperature, gate and accuracy do."""
