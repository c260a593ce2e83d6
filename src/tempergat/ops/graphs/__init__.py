"""Graphs as attention needs them, and what is kept of their tensors."""
