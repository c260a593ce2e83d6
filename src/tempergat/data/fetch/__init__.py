"""Finds raw files in the data root or a mirror, or downloads them."""
