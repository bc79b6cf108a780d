"""Execution providers beside those of the fast path: the definition itself, and onnxruntime, alone or in a worker.

`machine` runs a node by the machine's meaning of its operator. `onnx_runtime` makes sessions of onnxruntime of the
parts that it is given, which `extraction` writes as models; `memory` is what tensors lie in, also those that a worker
shares.
"""
