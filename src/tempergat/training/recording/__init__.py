"""What a run records of its training: curves, learned values and gates."""
