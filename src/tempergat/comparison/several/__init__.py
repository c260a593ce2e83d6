"""Methods compared on several graphs, one after another."""
