"""ONNX's own textual syntax, read by `onnx.parser`."""

from __future__ import annotations

import re
from typing import Final

from google.protobuf.message import DecodeError, EncodeError
from onnx import ModelProto, parser

from ...errors import ModelError
from ..path import quote
from ..schemas import newest_ir_version, newest_opset

MAX_NESTING: Final = 200
"""How deep brackets may nest; the parser of the onnx package recurses without a limit of its own."""

_OPENS: Final = re.compile(r'"(?:\\.|[^"\\])*"|[([{<]|[)\]}>]', re.DOTALL)
_PLACE: Final = re.compile(r"\(line: (\d+) column: (\d+)\)")
_BEGINNING: Final = re.compile(r"\s*(?:#[^\n]*\s*)*(?:<|[A-Za-z_][\w.\-]*\s*(?:<[^<>]*>\s*)?\()")
_HEADLESS: Final = re.compile(r"\s*(?:#[^\n]*\s*)*[A-Za-z_]")


def looks_textual(text: str) -> bool:
    """Whether a text begins as the textual syntax does: with "<", or an identifier and a parenthesis."""
    return _BEGINNING.match(text) is not None


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
    for found in _OPENS.finditer(text):
        if found[0] in "([{<":
            depth += 1
            if depth > MAX_NESTING:
                line = text.count("\n", 0, found.start()) + 1
                raise ModelError(f"line {line}: brackets lie more than {MAX_NESTING} deep inside each other: flatten")
        elif found[0] in ")]}>":
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
