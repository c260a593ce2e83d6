"""File formats of published datasets, read without running code from them.

`raw_graph` is the graph as plain arrays, which every reader returns. `numpy_files`,
`number_tables` and `pickles` read one kind of file each; `damaged` is their error.
"""
