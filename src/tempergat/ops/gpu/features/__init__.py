"""Kernels for ops on node features: those of `ops/features`, and gathering rows."""
