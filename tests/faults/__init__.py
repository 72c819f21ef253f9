"""Faults, and what comes from strangers."""
