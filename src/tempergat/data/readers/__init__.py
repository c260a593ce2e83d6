"""Readers of published datasets, one module per layout.

A reader takes the paths of the raw files by name and returns a
`tempergat.data.formats.raw_graph.Graph`. The catalogue says which dataset has which.
"""
