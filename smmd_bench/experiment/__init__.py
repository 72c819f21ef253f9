"""From flags or a YAML file to cells with addresses.

In: tasks, losses, models, seeds and settings by name. Out: an `Experiment` and its `Cell`s.
It may import `models` and what is below.
"""
