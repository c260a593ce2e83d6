"""Ops on node features: linear maps, sparse products, dropout and the gate."""
