"""Tables, figures, LaTeX and the page of a run, in one style.

In: a run as frames, and reports. Out: `reports/tables`, `reports/figures` and `index.html`;
of `export`, folders with checkpoints and results in the formats of others.
It may import `run` and what is below.
"""
