"""Training of many runs: what is left to do, who trains it, and how far it is."""
