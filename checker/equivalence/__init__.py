"""Equivalence of graphs: rules that rewrite them, and whether two models mean the same.

The parts do not import from here.
"""
