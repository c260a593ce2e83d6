"""The datasets that can be loaded by name, and the raw files they are read from."""
