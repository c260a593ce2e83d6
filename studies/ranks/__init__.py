"""Average ranks in the paper's tables."""
