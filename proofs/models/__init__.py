"""Finite models: sought, evaluated without a solver, made small, drawn.

It offers `search` and `standard`, what holds in a real model. It proves nothing.
"""
