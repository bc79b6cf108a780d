"""ONNX's own shape inference, run in a process of its own, and what it says of a model.

It offers `claims`. It decides nothing: a claim is a fact among others.
"""
