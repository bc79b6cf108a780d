"""The rechecker's own reader of the listing that `onnx.helper.printable_graph` prints, line by line.

It reads what the replay needs: names, operators, attributes without tensors, bodies. A listing that is written in
another way than that function prints it is Unsupported: it ends NOT-CHECKED.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import onnx
from sonnx.semantics.errors import ModelError, Unsupported

_LISTED = re.compile(
    r"\s*(?:#[^\n]*\s*)*(?:graph [^\n]*[({]|inputs\s|%|return\b|[^\W\d]\w*\s*(?:\[[^\n]*\])?\([^\n]*%)"
)
_HEADER = re.compile(
    r"(?:graph (.*?)(?= [({]\Z) )?(?:\) )?(optional inputs with matching initializers |initializers )?([({])\Z"
)
_VALUE = re.compile(r"%([^\s,()\[\]=]*)(?:\[([^\]]*)\])?,?\Z")
_INPUT = re.compile(r"\s*%?([^\s,()\[\]{}<>=\"']+)\s*(?:\[[^\]]*\])?\s*")
_NODE = re.compile(
    r"(?:(%[^\s,()\[\]=]*(?:\s*,\s*%[^\s,()\[\]=]*)*)\s*=\s*)?([^\W\d][^\s,()\[\]{}<>%=\"']*)\s*(?:\[(.*)\])?\s*\(([^()]*)\)\Z"
)
_BODY = re.compile(r"<graph (.*)>\Z")
_INTEGER = re.compile(r"-?[0-9]+\Z")
_NUMBER = re.compile(r"-?(?:inf|nan|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\Z")
_TYPES = onnx.AttributeProto
_OPEN, _CLOSE = "[<(", "]>)"
_STRANGE = Unsupported("the listing is not written as printable_graph prints it, so it cannot be replayed")


def looks_listed(text: str) -> bool:
    """A text begins as a listing or the body of one."""
    return _LISTED.match(text) is not None


def newest(graph: onnx.GraphProto) -> onnx.ModelProto:
    """The model of a graph that states no versions: the newest."""
    proto = onnx.ModelProto(ir_version=onnx.IR_VERSION)
    proto.opset_import.add(domain="", version=onnx.defs.onnx_opset_version())
    proto.graph.CopyFrom(graph)
    return proto


def parse(text: str) -> onnx.ModelProto:
    """The model that a listing shows. Raises ModelError, Unsupported."""
    try:
        return _read(text)
    except (SyntaxError, ValueError, LookupError, RecursionError):  # of Python's literals, of protobuf's fields
        raise _STRANGE from None


def _read(text: str) -> onnx.ModelProto:
    lines = [bare for line in text.splitlines() if (bare := line.partition("#")[0].strip())]
    if not lines[0].startswith("graph "):
        return newest(_bare(lines))
    blocks = iter([_Block(block) for block in _split(lines)])
    try:
        graph = _assemble(blocks)
    except StopIteration:
        raise _STRANGE from None
    return newest(graph)


def _split(lines: list[str]) -> Iterator[list[str]]:
    """The lines of each graph: from its header to the closing brace, without this."""
    block: list[str] = []
    for line in lines:
        if line == "}":
            yield block
            block = []
        else:
            block.append(line)
    if block:
        raise ModelError("the listing ends inside a graph; give the whole file")


def _assemble(blocks: Iterator[_Block]) -> onnx.GraphProto:
    """The next graph with its bodies, which follow it depth first, for each node in any order."""
    block = next(blocks)
    for slots in block.slots:
        waiting = dict(slots)
        if len(waiting) < len(slots):
            raise _STRANGE
        for _ in slots:
            body = _assemble(blocks)
            if body.name not in waiting:
                raise _STRANGE
            waiting.pop(body.name).g.CopyFrom(body)
    return block.graph


def _bare(lines: list[str]) -> onnx.GraphProto:
    """The body of a listing alone: its inputs are declared in front, or else the names that nothing defines."""
    declared: list[str] | None = None
    if lines[0].startswith("inputs"):
        count = next((k for k, line in enumerate(lines) if line.startswith(("%", "return"))), len(lines))
        declared = [_name(part) for part in " ".join(lines[:count])[len("inputs") :].split(",") if part.strip()]
        lines = lines[count:]
    block = _Block(["graph graph {", *lines])
    if any(block.slots):
        raise _STRANGE
    graph = block.graph
    defined = {name for node in graph.node for name in node.output}
    read = [name for node in graph.node for name in node.input] + [value.name for value in graph.output]
    for name in dict.fromkeys(name for name in read if name and name not in defined) if declared is None else declared:
        graph.input.add(name=name)
    return graph


def _name(part: str) -> str:
    match = _INPUT.fullmatch(part)
    if match is None:
        raise _STRANGE
    return match[1]


class _Block:
    """One printed graph. slots: for each node the names of its bodies and the attributes that they go to."""

    def __init__(self, lines: list[str]) -> None:
        self.graph = onnx.GraphProto()
        self.slots: list[list[tuple[str, onnx.AttributeProto]]] = []
        section = "graph"
        for line in lines:
            header = _HEADER.match(line) if section != "{" and not line.startswith("%") else None
            if header is not None:
                self.graph.name = self.graph.name or header[1] or ""
                section = header[2] or header[3]
            elif section == "{":
                self._statement(line)
            else:
                self._value(line, section)

    def _value(self, line: str, section: str) -> None:
        match = _VALUE.match(line)
        if match is None:
            raise _STRANGE
        element = onnx.TensorProto.DataType.items()
        code = dict(element).get((match[2] or "").partition(",")[0].strip(), 0)
        if section != "initializers ":
            value = self.graph.input.add(name=match[1])
            if code:
                value.type.tensor_type.elem_type = code
        if section != "(":
            self.graph.initializer.add(name=match[1], data_type=code)

    def _statement(self, line: str) -> None:
        if line == "return" or line.startswith("return "):
            for name in _names(line[6:]):
                self.graph.output.add(name=name)
            return
        match = _NODE.match(line)
        if match is None:
            raise _STRANGE
        node = self.graph.node.add(op_type=match[2], output=_names(match[1] or ""), input=_names(match[4]))
        self.slots.append([slot for item in _items(match[3] or "") for slot in _attribute(node, item)])


def _attribute(node: onnx.NodeProto, item: str) -> Iterator[tuple[str, onnx.AttributeProto]]:
    name, separator, value = (part.strip() for part in item.partition("="))
    if not separator:
        raise _STRANGE
    attribute = node.attribute.add(name=name)
    body = _BODY.match(value)
    if body:
        attribute.type = _TYPES.GRAPH
        yield body[1], attribute
    elif "<graph " in value:
        raise _STRANGE
    elif value.startswith("<"):
        attribute.type = {"<Sparse Tensor>": _TYPES.SPARSE_TENSOR}.get(value, _TYPES.TENSOR)
    else:
        _plain(attribute, node.op_type, value)


def _plain(attribute: onnx.AttributeProto, op_type: str, value: str) -> None:
    """A number, a text, or a list of them; a whole number is a float where the operator has one."""
    many = value.startswith("[")
    parts = list(_items(value[1:-1])) if many else [value]
    floating = _kind(op_type, attribute.name) in (_TYPES.FLOAT, _TYPES.FLOATS)
    if parts and all(part[:1] in ("'", '"') for part in parts):
        texts = [str(ast.literal_eval(part)).encode() for part in parts]
        attribute.type = _TYPES.STRINGS if many else _TYPES.STRING
        attribute.strings.extend(texts if many else ())
        attribute.s = b"" if many else texts[0]
    elif not floating and all(_INTEGER.match(part) for part in parts):
        attribute.type = _TYPES.INTS if many else _TYPES.INT
        attribute.ints.extend([int(part) for part in parts] if many else ())
        attribute.i = 0 if many else int(parts[0])
    elif all(_NUMBER.match(part) for part in parts):
        attribute.type = _TYPES.FLOATS if many else _TYPES.FLOAT
        attribute.floats.extend([float(part) for part in parts] if many else ())
        attribute.f = 0.0 if many else float(parts[0])
    else:
        raise _STRANGE
    for single in ("s", "i", "f") if many else ():
        attribute.ClearField(single)


def _kind(op_type: str, attribute: str) -> int:
    try:
        stated = onnx.defs.get_schema(op_type).attributes.get(attribute)
    except onnx.defs.SchemaError:
        return 0
    return 0 if stated is None else onnx.AttributeProto.AttributeType.Value(str(stated.type).rpartition(".")[2])


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
