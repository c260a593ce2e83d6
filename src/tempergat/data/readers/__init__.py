"""Readers of published datasets, one module per layout."""
