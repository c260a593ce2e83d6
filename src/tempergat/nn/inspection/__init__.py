"""What the attention layers of a model do on a graph."""
