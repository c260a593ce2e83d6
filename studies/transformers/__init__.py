"""A temperature and a gate in graph transformers."""
