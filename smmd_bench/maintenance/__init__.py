"""What else is done with run folders: clean, merge, score completions made elsewhere.

In: folders, and files of completions made elsewhere. Out: folders of runs, or the smoke test of a
machine.
It may import `run` and what is below.
"""
