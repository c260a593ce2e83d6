"""One run from Python or the command: train, save, load and predict."""
