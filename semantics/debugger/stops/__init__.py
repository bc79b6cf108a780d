"""Breakpoints, watches and catches: conditions, counts, faults, log points, and references to compare with.

It decides whether a moment is one to stop at, and moves nothing.
"""
