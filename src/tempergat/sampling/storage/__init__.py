"""Edges and features of a large graph, in memory or mapped from files."""
