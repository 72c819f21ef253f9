"""`smmd-bench clean`: what of runs and of the cache can go, and what it costs to have it again."""
