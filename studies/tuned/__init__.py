"""Every method with settings of its own search, and of further searches."""
