"""Memory and time of this process: the budget, limits of the operating system, pauses of the garbage collector, and the
persistent map that lets states share what they have in common.

It offers helpers that know neither models nor the specification.
"""
