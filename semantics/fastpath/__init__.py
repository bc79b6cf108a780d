"""The fast path: NumPy kernels for the operators behind the execution-provider protocol, and sessions that run them."""
