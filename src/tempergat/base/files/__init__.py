"""Files: atomic writes, locks, arrays, and values of YAML, CSV and JSON."""
