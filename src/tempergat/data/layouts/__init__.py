"""Layouts of user graphs in files: one module reads one kind of file."""
