"""The kernels, a file for each family of operators.

Each file exports its table `KERNELS`, by operator and versions, which `fastpath.registry` puts together. A kernel sees
arrays and attributes; it must not know sessions, providers or other kernels' tables.
"""
