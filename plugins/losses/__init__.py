"""First-party losses."""
