"""The specification of ONNX graphs under the SONNX profile: its text, and the language that it is written in."""
