"""First-party executors."""
