"""The models of some runs, and a user's own modules."""
