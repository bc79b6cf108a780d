"""Values in files: NumPy's formats and protobuf, and the inputs of a run from either.

It offers `input_files` to the commands. It knows types and no graph.
"""
