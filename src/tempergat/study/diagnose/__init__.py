"""Measurements of a graph, and a short screening of the methods on it."""
