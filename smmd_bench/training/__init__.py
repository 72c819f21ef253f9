"""The training stage: a cell to one checkpoint an epoch, with the log and the canaries.

In: a `Cell` and its folder. Out: `checkpoint/`, `train_log.parquet` and `train.json` there.
It may import `objective` and what is below.
"""
