"""How long a job may be silent: the variable that every process of a run reads."""

STALL = "SMMD_BENCH_STALL"
"""The minutes after which a job that says nothing is ended; 0: never."""
