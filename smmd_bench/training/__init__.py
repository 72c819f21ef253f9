"""Fine-tuning: loading, tokenising and collating, the objective, the Trainer.

Raise `smmd_bench.recipe.TRAINING_VERSION` when a change here changes weights.
"""
