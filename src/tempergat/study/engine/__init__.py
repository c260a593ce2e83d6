"""Runs: trained group by group, kept in a store, exported as CSV."""
