"""Regression checks through lm-eval: what a run's checkpoints can still do besides numbers.

In: a run or a checkpoint, and MMLU or SAMSum. Out: `regression/` of the run, with comparisons.
It may import `publishing` and what is below.
"""
