"""Checkpoints by name: cards, recipes, built-in checkpoints, licences, and loading.

In: a name or a folder. Out: a card with its recipe, and the tokenizer, processor and weights.
It may import `scoring` and what is below.
"""
