"""Completions made elsewhere: read, matched to a task's examples, scored into a run folder."""
