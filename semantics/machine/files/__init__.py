"""Values in files: NumPy's formats, protobuf and JSON, and the inputs of a run from them.

It offers `numpy_files.input_values` to the commands. It knows types and no graph.
"""
