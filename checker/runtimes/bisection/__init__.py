"""Bisection of a runtime: the optimizers without which its result would be one that the specification allows.

It offers `searching` and the reports. It knows an engine by the protocol `Optimizing` alone, judges with
`differential`, and takes crashes, sessions that fail and time-outs for what a set of optimizers leads to.
"""
