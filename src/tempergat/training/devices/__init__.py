"""Devices: their choice, their memory, and work as CUDA graphs."""
