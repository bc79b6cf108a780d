"""The interpretation as ground terms: a constraint over one structure without quantifiers, ready for a solver.

`constraints` is the entry, `symbols` says which facts a formula mentions. It knows no solver and prints nothing.
"""
