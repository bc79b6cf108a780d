"""Values in files: NumPy's formats and protobuf, and the inputs of a run from either.

It offers `numpy_files.input_values` to the commands. It knows types and no graph.
"""
