"""What strangers supply, made by chance: see `docs/reliability.md`, Fuzzing.

targets.py    one function a target: bytes go in, only the project's own errors come out
corpus/       inputs of each target: examples, what added coverage, and what once failed
test_fuzz.py  every input of the corpus, and some changes of each
`python -m tests.fuzz TARGET --seconds N` searches for longer, guided by coverage.
"""
