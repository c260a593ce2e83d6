"""Graph attention with a learnable softmax temperature and feature gates."""

__version__ = "0.1.0"
