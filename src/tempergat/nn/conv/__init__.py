"""The layers: attention with temperature and gate, graph convolution, linear."""
