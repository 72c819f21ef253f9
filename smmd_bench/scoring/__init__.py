"""Completions to parsed answers, scores, metrics and their intervals.

In: completions and examples, our own or made elsewhere (`predictions`). Out: scored frames.
It may import `plugin_system` and what is below.
"""
