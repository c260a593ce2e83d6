"""Batches of many small graphs."""
