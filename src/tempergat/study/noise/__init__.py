"""The study of controlled feature noise."""
