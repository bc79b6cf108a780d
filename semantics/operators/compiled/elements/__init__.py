"""The tables of elements that compiled definitions run on: IEEE arithmetic, exact numbers, sets of allowed values.

A table knows single elements and arrays of them, and no definition.
"""
