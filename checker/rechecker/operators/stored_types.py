"""What the language calls ONNX's element types."""

from __future__ import annotations

import onnx

NAMES = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
"""The element types by their codes."""
