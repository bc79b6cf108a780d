"""A text as G: which of the two textual forms it is, and the model that it spells."""

from __future__ import annotations

from google.protobuf.message import EncodeError

from ...errors import ModelError
from ..graph import Model, ModelFile
from .listing import looks_listed, read_listing
from .protobuf import from_bytes
from .textual import looks_textual, read_text


def from_text(data: bytes, files: tuple[ModelFile, ...] = ()) -> Model:
    """The model that a text spells, in ONNX's textual syntax or as a listing. Raises ModelError."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ModelError(f"line {line}: the text is not UTF-8: save it as UTF-8") from None
    if looks_listed(text):
        source, proto = "listing", read_listing(text)
    elif looks_textual(text):
        source, proto = "text", read_text(text)
    else:
        raise ModelError("the text is neither ONNX's textual syntax nor a listing: give an .onnx file")
    try:
        content = proto.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise ModelError(f"the text cannot be represented as a model ({error}): give an .onnx file") from None
    return from_bytes(content, source, files=files, content=content)
