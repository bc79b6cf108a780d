"""Definitions over sizes of which not all are known: one fold, whose numbers are polynomials and terms.

It offers `statements`, `application`, `definedness` and `footprint`. Elements are values of an algebra in
`elements`; it asks no solver.
"""
