"""Temperatures, and a loss that knows how far off they are: plugins for smmd-bench."""
