"""The report of comparisons as one self-contained HTML file."""
