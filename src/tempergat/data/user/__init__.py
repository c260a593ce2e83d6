"""User graphs: read from files or PyG objects, checked, and reported on."""
