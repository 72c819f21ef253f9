"""Pictures in prompts: reading them, the processor of a checkpoint, and what a model takes."""
