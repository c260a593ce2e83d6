"""Training of one run by several processes, which `torchrun` starts."""
