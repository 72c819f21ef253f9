"""What a loss costs: step time and peak memory of real training steps (Table 7 of the paper).

In: losses, geometries and settings. Out: a folder of measurements, each in its own process.
It may import `regression` and what is below.
"""
