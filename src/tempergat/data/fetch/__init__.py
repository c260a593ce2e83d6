"""Raw files: found in the data root or a mirror, or downloaded."""
