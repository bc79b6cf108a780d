"""Definitions compiled to NumPy: from the text to terms, to plans, to arrays.

It offers `ieee`, `exact` and `bound`: one evaluator over three tables of elements. Sizes are known when it runs; for
open sizes there is `symbolic`.
"""
