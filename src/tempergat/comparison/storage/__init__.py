"""Finished runs as rows of an SQLite file, and as published CSV."""
