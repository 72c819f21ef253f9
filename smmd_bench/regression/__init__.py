"""Regression checks through lm-eval: what a run's checkpoints can still do besides numbers."""
