"""The rechecker's own reader of the listing that `onnx.helper.printable_graph` prints, by regular expressions.

It reads what the replay needs: names, operators, integer and text attributes, bodies. Tensor values are elided there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import onnx
from sonnx.semantics.errors import ModelError, Unsupported

_NAME = r"%([^\s,()\[\]=]*)"
_VALUE = re.compile(rf"{_NAME}(?:\[(.*)\])?\Z")
_HEADER = re.compile(
    r"(?:graph\s+(\S+)\s*)?\)?\s*(\(|\{|initializers\s*\(|optional inputs with matching initializers\s*\(|)\Z"
)
_NODE = re.compile(
    r"(?:(%[^\s,()\[\]=]*(?:\s*,\s*%[^\s,()\[\]=]*)*)\s*=\s*)?"
    r"([A-Za-z_][\w.:]*)\s*(?:\[(.*)\])?\s*\(([^()]*)\)\Z",
    re.DOTALL,
)
_BODY = re.compile(r"<graph (.*)>\Z")
_INTEGER = re.compile(r"-?[0-9]+\Z")
_FLOAT = re.compile(r"-?(?:[0-9.]+(?:e[-+]?[0-9]+)?|inf|nan)\Z")
_OPEN, _CLOSE = "[<(", "]>)"


def parse(text: str) -> onnx.ModelProto:
    """The model that a listing shows, without IR version and operator sets. Raises ModelError, Unsupported."""
    blocks = [_Block(lines) for lines in _split(text)]
    if not blocks:
        raise ModelError("the listing has no graph; give the file that was certified")
    proto = onnx.ModelProto()
    proto.graph.CopyFrom(blocks[0].graph)
    named: dict[str, _Block] = {}
    for block in blocks[1:]:
        if block.graph.name in named:
            raise Unsupported("a listing with two bodies of one name does not say which node holds which")
        named[block.graph.name] = block
    _attach(proto.graph, blocks[0].bodies, named)
    return proto


def _attach(graph: onnx.GraphProto, bodies: list[tuple[int, str, str]], named: dict[str, _Block]) -> None:
    for node, attribute, name in bodies:
        block = named.pop(name, None)
        if block is None:
            raise Unsupported("a listing whose bodies are not printed below it cannot be replayed")
        held = graph.node[node].attribute.add(name=attribute, type=onnx.AttributeProto.GRAPH)
        held.g.CopyFrom(block.graph)
        _attach(held.g, block.bodies, named)


def _split(text: str) -> Iterator[list[str]]:
    """The lines of each graph: from its header to the closing brace."""
    lines: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if not bare or (bare.startswith(("#", "//")) and not lines):
            continue
        lines.append(bare)
        if bare == "}":
            yield lines
            lines = []
    if lines:
        raise ModelError("the listing ends inside a graph; give the whole file")


class _Block:
    """One printed graph; `bodies` says which node names which body in which attribute."""

    def __init__(self, lines: list[str]) -> None:
        self.graph = onnx.GraphProto()
        self.bodies: list[tuple[int, str, str]] = []
        section = ""
        for line in lines[:-1]:
            header = None if line.startswith("%") else _HEADER.match(line)
            if header and section != "{":
                if header[1]:
                    self.graph.name = header[1]
                section = header[2]
            elif section == "{":
                self._statement(line)
            else:
                self._value(line.rstrip(","), section)

    def _value(self, line: str, section: str) -> None:
        match = _VALUE.match(line)
        if match is None:
            raise ModelError("the listing has a line that is no value; give the file that was certified")
        name, kind = match[1], match[2] or ""
        element = getattr(onnx.TensorProto, kind.split(",")[0].strip(), 0) if kind else 0
        if not isinstance(element, int):
            element = 0
        if section == "(" or "optional" in section:
            value = self.graph.input.add(name=name)
            if element:
                value.type.tensor_type.elem_type = element
        if section != "(":
            self.graph.initializer.add(name=name, data_type=element)

    def _statement(self, line: str) -> None:
        if line == "return" or line.startswith("return "):
            for name in _names(line[6:]):
                self.graph.output.add(name=name)
            return
        match = _NODE.match(line)
        if match is None:
            raise Unsupported("the listing has a statement that this reader does not understand")
        domain, _, op_type = match[2].rpartition("::")
        node = self.graph.node.add(op_type=op_type, domain=domain)
        node.output.extend(_names(match[1] or ""))
        node.input.extend(_names(match[4]))
        for item in _items(match[3] or ""):
            self._attribute(node, item)

    def _attribute(self, node: onnx.NodeProto, item: str) -> None:
        name, separator, value = (part.strip() for part in item.partition("="))
        if not separator:
            raise Unsupported("the listing has an attribute that this reader does not understand")
        body = _BODY.match(value)
        if body:
            self.bodies.append((len(self.graph.node) - 1, name, body[1]))
            return
        if "<graph " in value:
            raise Unsupported("the listing has a list of bodies, which this reader does not understand")
        attribute = node.attribute.add(name=name)
        if _INTEGER.match(value):
            attribute.type, attribute.i = onnx.AttributeProto.INT, int(value)
        elif _FLOAT.match(value):
            attribute.type, attribute.f = onnx.AttributeProto.FLOAT, float(value)
        elif value[:1] in ("'", '"'):
            attribute.type, attribute.s = onnx.AttributeProto.STRING, value[1:-1].encode()
        elif value.startswith("["):
            entries = list(_items(value[1:-1]))
            if all(_INTEGER.match(entry) for entry in entries):
                attribute.type = onnx.AttributeProto.INTS
                attribute.ints.extend(int(entry) for entry in entries)


def _names(text: str) -> list[str]:
    return [part.strip().removeprefix("%") for part in text.split(",")] if text.strip() else []


def _items(text: str) -> Iterator[str]:
    """The parts of a list between commas that stand outside brackets and quotes."""
    depth, quote, start = 0, "", 0
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        elif char == "," and depth == 0:
            yield text[start:index].strip()
            start = index + 1
    if text[start:].strip():
        yield text[start:].strip()
