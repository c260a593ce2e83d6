"""Which settings of the baselines suit a graph of which nothing is known."""
