"""Several runs: one beside the other, or all in one."""
