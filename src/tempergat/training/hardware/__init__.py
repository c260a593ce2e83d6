"""Devices, their memory, and how many runs they train at once."""
