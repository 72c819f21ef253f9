"""Fine-tuning: loading, tokenising and collating, the objective, the Trainer."""
