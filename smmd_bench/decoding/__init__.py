"""The decoding stage: greedy completions and digit probabilities of every checkpoint.

In: cells that are trained. Out: `completions.parquet` and `probes.parquet`, guarded by canaries.
It may import `training` and what is below.
"""
