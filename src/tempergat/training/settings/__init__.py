"""The settings of runs: their values, the recipes they come from, a user's changes."""
