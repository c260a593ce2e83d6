"""The options of commands: those they share, and their help and completion."""
