"""What a loss costs: step time and peak memory of real training steps (Table 7 of the paper)."""
