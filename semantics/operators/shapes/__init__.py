"""The requirements of a model's operators, before it runs: shapes and requirements computed from the operators' texts.

`walk` is the entry: every node in an order in which it could run, with what is known by then. It decides what
follows from numbers alone; the rest is a term for the checker's solver.
"""
