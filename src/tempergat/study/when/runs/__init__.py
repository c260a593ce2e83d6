"""The runs of the study: their groups, their search, their rows."""
