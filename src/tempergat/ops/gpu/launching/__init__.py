"""How kernels are compiled and started."""
