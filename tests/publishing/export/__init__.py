"""`smmd-bench export`: each format against its own validator."""
