"""Tasks for lm-eval: YAML, and the functions that it names."""
