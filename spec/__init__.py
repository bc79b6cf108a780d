"""The specification of ONNX graphs under the SONNX profile: its texts, and the language that they are written in.

The texts lie at the root (1-syntax to 6-properties, 5-operators/, profiles/, examples/); `library` reads them. This
layer executes no model: what a text means is the business of the layers above, which this one does not know.
"""
