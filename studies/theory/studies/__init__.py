"""Simulations and trained layers: one module per table of the analysis."""
