"""The results of a cell in the formats of others: a model folder, and files of its metrics.

In: a run as frames, and addresses of its cells. Out: a folder a cell, which the hub, lm-eval and
every_eval_ever can read. It may import what `publishing` may.
"""
