"""Neighbour sampling on the CPU: the hops of a batch, its layers, the whole graph."""
