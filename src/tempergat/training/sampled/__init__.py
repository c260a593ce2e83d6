"""Training on sampled neighbourhoods, and exact inference layer by layer."""
