"""The paper's second table."""
