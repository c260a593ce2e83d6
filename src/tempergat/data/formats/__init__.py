"""File formats of published datasets, read without running code from them."""
