"""A graph measured, and its methods compared in a short screening."""
