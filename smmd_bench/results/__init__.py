"""A run as pandas frames, of what is current alone.

In: a run folder. Out: `RunFrames`: cells, metrics, completions, probes, comparisons.
It may import `decoding` and what is below.
"""
