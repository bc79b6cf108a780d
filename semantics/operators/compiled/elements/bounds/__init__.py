"""Sets of allowed elements: arithmetic, conversions, functions, sums in any order, and verdicts on results.

`elements.bound` is the table that is made of them. It knows no definition.
"""
