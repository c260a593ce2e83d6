"""The CPU backend: C++ kernels, called through ctypes."""
