"""Places of tensors in M: plans made ahead, their check, places found while a model runs, and pictures.

It offers `plan`, `check` and `dynamic`. It knows sizes and lifetimes, no values.
"""
