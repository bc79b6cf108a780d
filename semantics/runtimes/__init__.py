"""Executors of models besides the machine: the fast path, engines behind one protocol, ONNX's backend, the benchmark.

It offers `engines` and `fastpath`. It judges no result; that is the checker's business.
"""
