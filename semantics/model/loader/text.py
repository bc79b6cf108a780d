"""A text as G: which of the two textual forms it is, and the model that it spells."""

from __future__ import annotations

import re
from typing import Final

from google.protobuf.message import DecodeError, EncodeError
from onnx import ModelProto, parser

from ...errors import ModelError
from ..graph import Model, ModelFile
from ..path import quote
from ..schemas import newest_ir_version, newest_opset
from .build import from_bytes
from .listing import looks_listed, read_listing

MAX_NESTING: Final = 200
"""The greatest depth of brackets; the parser of the onnx package recurses without a limit of its own."""

_OPENS: Final = re.compile(r'"(?:\\.|[^"\\])*"|[([{<]|[)\]}>]', re.DOTALL)
_PLACE: Final = re.compile(r"\(line: (\d+) column: (\d+)\)")
_BEGINNING: Final = re.compile(r"\s*(?:#[^\n]*\s*)*(?:<|[A-Za-z_][\w.\-]*\s*(?:<[^<>]*>\s*)?\()")
_HEADLESS: Final = re.compile(r"\s*(?:#[^\n]*\s*)*[A-Za-z_]")


def read_text(text: str) -> ModelProto:
    """The model that a text in ONNX's textual syntax spells.

    A graph without a header of its own gets the newest IR version and operator set. Raises ModelError with line and
    column.
    """
    check_nesting(text)
    try:
        if _HEADLESS.match(text):
            proto = ModelProto(ir_version=newest_ir_version())
            proto.opset_import.add(domain="", version=newest_opset())
            proto.graph.CopyFrom(parser.parse_graph(text))
            return proto
        return parser.parse_model(text)
    except parser.ParseError as error:
        raise ModelError(_message(error)) from None
    except (DecodeError, EncodeError, LookupError, UnicodeError, ValueError, RuntimeError) as error:
        raise ModelError(f"the text is no ONNX model ({_line(str(error))}): correct it") from None


def check_nesting(text: str) -> None:
    """Raise ModelError when the brackets of a text nest deeper than MAX_NESTING."""
    depth = 0
    for opening in _OPENS.finditer(text):
        if opening[0] in "([{<":
            depth += 1
            if depth > MAX_NESTING:
                line = text.count("\n", 0, opening.start()) + 1
                raise ModelError(f"line {line}: brackets lie more than {MAX_NESTING} deep inside each other: flatten")
        elif opening[0] in ")]}>":
            depth = max(depth - 1, 0)


def _message(error: Exception) -> str:
    argument = error.args[0] if error.args else ""
    text = argument.decode(errors="replace") if isinstance(argument, bytes) else str(argument)
    if text.startswith(("b'", 'b"')):
        text = text[2:-1].encode().decode("unicode_escape", errors="replace")
    place = _PLACE.search(text)
    where = f"line {place[1]}, column {place[2]}" if place else "ONNX text"
    reason = text.strip().rpartition("\n")[2].strip().rstrip(".")
    return f"{where}: {_line(reason)}: correct the text at this place"


def _line(text: str) -> str:
    """The text in one inert line."""
    return quote(" ".join(text.split())[:200])[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def from_text(data: bytes, files: tuple[ModelFile, ...] = ()) -> Model:
    """The model that a text spells, in ONNX's textual syntax or as a listing. Raises ModelError."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ModelError(f"line {line}: the text is not UTF-8: save it as UTF-8") from None
    if looks_listed(text):
        source, proto = "listing", read_listing(text)
    elif _BEGINNING.match(text):
        source, proto = "text", read_text(text)
    else:
        raise ModelError("the text is neither ONNX's textual syntax nor a listing: give an .onnx file")
    try:
        content = proto.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise ModelError(f"the text cannot be represented as a model ({error}): give an .onnx file") from None
    return from_bytes(content, source, files=files, content=content)
