"""The rechecker's own spelling of paths: the names of nodes and tensors in a certificate.

node   ::= prefix INDEX ":" OP [ "(" quoted ")" ]      tensor ::= prefix quoted
prefix is "/" in the main graph, BODY "/" in a body, CALL "!" in a call of a function
BODY   ::= node "." attribute [ "[" INDEX "]" ]        with INDEX where the attribute is a list of graphs
"""

from __future__ import annotations

import re

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.:]*\Z")
_HARMLESS = re.compile(r"[A-Za-z0-9_./:-]*\Z")
_SHORT = {'"': '\\"', "\\": "\\\\"}


def quoted(name: str) -> str:
    """The name as a JSON string of harmless ASCII: control characters, non-ASCII and < > & as \\uXXXX."""
    if _HARMLESS.match(name):
        return f'"{name}"'
    return '"' + "".join(_escaped(char) for char in name) + '"'


def _escaped(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if 0x20 <= code < 0x7F and char not in "<>&":
        return char
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"


def operator(domain: str, name: str) -> str:
    """The operator as paths and the specification spell it: with its domain in front unless it is ONNX's own."""
    return f"{domain}::{name}" if domain else name


def _shown(domain: str, name: str) -> str:
    text = operator(domain, name)
    return text if _PLAIN.match(text) else quoted(text)


def function(domain: str, name: str, overload: str) -> str:
    """A model-local function: its operator, and its overload behind a colon."""
    return f"{_shown(domain, name)}:{_shown('', overload)}" if overload else _shown(domain, name)


def node(prefix: str, index: int, domain: str, op_type: str, name: str) -> str:
    """The path of the node at position `index` of its list."""
    shown = _shown(domain, op_type)
    return f"{prefix}{index}:{shown}({quoted(name)})" if name else f"{prefix}{index}:{shown}"


def body(holder: str, attribute: str, index: int | None = None) -> str:
    """The path of a graph that the node `holder` has as an attribute; index in an attribute that is a list."""
    shown = attribute if _IDENTIFIER.match(attribute) else quoted(attribute)
    return f"{holder}.{shown}" if index is None else f"{holder}.{shown}[{index}]"
