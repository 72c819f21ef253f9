"""The training stage: a cell to one checkpoint an epoch, with the log and the canaries.

In: a `Cell` and the folder of a run. Out: train/KEY there, see `smmd_bench.training.stage`.
It may import `objective` and what is below.
"""
