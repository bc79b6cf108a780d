"""The direct interpretation: a constraint judged by evaluating it over the facts, one table of rules for each kind of
expression.

`constraints` is the entry. It knows no solver.
"""
