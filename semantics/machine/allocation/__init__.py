"""Places of tensors in M: plans made ahead, their check, places found while a model runs, and pictures.

It offers allocators, plans with their `check`, and what a run shows of both. It knows sizes and lifetimes, no values.
"""
