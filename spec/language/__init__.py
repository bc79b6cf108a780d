"""Text and tree: the grammar, the syntax, parsing, printing, and the errors of the specification language.

It offers `parse`, `printer` and the classes of `syntax`, every node with its span. It knows neither sorts nor ONNX;
what a tree means is checked by `elaborate`.
"""
