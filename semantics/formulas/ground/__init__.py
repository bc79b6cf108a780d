"""The interpretation as ground terms: a constraint over one structure without quantifiers, ready for a solver.

`constraints` is the entry, `expressions` the table. It knows no solver and prints nothing.
"""
