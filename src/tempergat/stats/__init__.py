"""What scores do and do not show: paired tests, ranks, trends, intervals."""
