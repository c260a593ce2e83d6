"""Files, locks, YAML, suggestions and words for system errors; knows no torch."""
