"""Layers and models of other libraries as layers of this one."""
