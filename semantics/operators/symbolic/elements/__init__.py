"""The algebras of elements for open sizes: exact, opaque, partly known, and with the elements that were read.

An algebra knows single elements, and no definition.
"""
