"""Prompts, targets and pictures as token ids; numbers as text, and as tokens.

In: examples and a tokenizer or processor. Out: token ids with labels; the numeric vocabulary.
It may import `experiment` and what is below.
"""
