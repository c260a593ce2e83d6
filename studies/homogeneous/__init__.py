"""The paper's first table, run again."""
