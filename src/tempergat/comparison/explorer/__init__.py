"""The explorer: what a trained model does at single nodes."""
