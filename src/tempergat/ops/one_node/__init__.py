"""A layer on a small graph as one node of autograd."""
