"""Typed graphs as the models for them take them: one graph of a single type."""
