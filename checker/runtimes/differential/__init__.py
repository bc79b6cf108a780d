"""Engines judged by the specification: what they compute, element by element, and whether it is allowed.

It offers `comparison` and `fuzzing`. It knows engines by their protocol alone.
"""
