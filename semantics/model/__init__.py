"""G: a model as immutable data, with its names, element types, stored tensors and ONNX's schemas.

It offers the classes of `graph`, paths, arrays of stored tensors and `loader`, which makes G from files. It does not
know what an operator computes, nor any rule.
"""
