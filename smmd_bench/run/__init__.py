"""A run folder and the work in it: plan, place, resume, compare, merge and clean.

In: an `Experiment` and a folder. Out: a finished run, `manifest.json` and `comparison` files.
It may import `results` and what is below.
"""
