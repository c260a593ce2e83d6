"""File formats and the plain arrays they are read into."""
