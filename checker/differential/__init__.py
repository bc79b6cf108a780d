"""Engines judged by the specification: what they compute, element by element, and whether it is allowed."""
