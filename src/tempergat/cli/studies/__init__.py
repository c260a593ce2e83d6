"""Commands that run the studies of the paper, and write their pages."""
