"""The kernel, and what it is made of: the text copied once, its translation, the theory, SMT-LIB text.

`kernel` is the only place where theorems are made. It knows neither scripts nor gates.
"""
