"""How often the best method is in the set that a comparison names, and its size."""
