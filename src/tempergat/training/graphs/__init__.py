"""What models are called with: features and edges of whole graphs, and batches."""
