"""One sweep on several machines, by Ray."""
