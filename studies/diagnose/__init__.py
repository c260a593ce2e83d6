"""Whether the method that a short screening picks is worth following."""
