"""Graphs in a user's own files."""
