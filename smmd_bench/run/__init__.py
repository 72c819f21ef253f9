"""A run folder and the work in it: plan, place, resume and compare.

In: an `Experiment` and a folder. Out: a finished run, `manifest.json` and `comparison` files.
It may import `results` and what is below.
"""
