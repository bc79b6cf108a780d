"""The listing of `onnx.helper.printable_graph`, and its body alone, as a model.

What a listing does not say, and how it is read: operator set and IR version are the newest, all operators are from
ONNX's own domain, values of tensors are unknown (such a model can be certified, not run). A number is an INT or a
FLOAT as the operator's schema says, else by its look. A shape whose dimensions cannot be told apart is no shape.
Nested graphs follow the graph that names them, depth first. printable_graph leaves out the initializers of a graph
without inputs: a name that such a graph reads from nowhere makes the listing unreadable.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Final, cast

from google.protobuf import text_format
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from ...errors import ModelError
from ..path import quote
from ..schemas import newest_ir_version, newest_opset, schema

MAX_DEPTH: Final = 100
"""The greatest depth of graphs inside each other."""

_BEGINNING: Final = re.compile(
    r"\s*(?:#[^\n]*\s*)*(?:graph [^\n]*[({]|inputs\s|%|return\b|[^\W\d]\w*\s*(?:\[[^\n]*\])?\([^\n]*%)"
)
_CUT: Final = re.compile(r"\.\.\.<\+len=\d+>\Z")
_DIM: Final = re.compile(r"\?|-?\d+|[^\W\d][^x\s]*")
_CODES: Final = dict(TensorProto.DataType.items())
_SPECIALS: Final = {"<Tensor>": "TENSOR", "<Sparse Tensor>": "SPARSE_TENSOR"}


def looks_listed(text: str) -> bool:
    """True where a text begins as a listing or the body of one does."""
    return _BEGINNING.match(text) is not None


@cache
def grammar() -> Lark:
    """The LALR(1) parser of `listing.lark`."""
    text = files(__package__).joinpath("listing.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", start="listing", maybe_placeholders=True)


@dataclass(frozen=True, slots=True)
class _Slot:
    """The target of a nested graph: its name, and the message that it fills."""

    name: str
    into: GraphProto


@dataclass(frozen=True, slots=True)
class _Block:
    """One printed graph, its nested graphs missing. slots: those of each node that has any."""

    proto: GraphProto
    slots: tuple[tuple[_Slot, ...], ...]


def read_listing(text: str) -> ModelProto:
    """The model that a listing shows. Raises ModelError with line and column."""
    try:
        tree = grammar().parse(text)
    except UnexpectedInput as error:
        raise ModelError(_message(error)) from None
    model = ModelProto(ir_version=newest_ir_version())
    model.opset_import.add(domain="", version=newest_opset())
    first = _tree(tree.children[0])
    try:
        if first.data == "body":
            model.graph.CopyFrom(_body(first))
        else:
            blocks = iter([_graph(_tree(child)) for child in tree.children])
            model.graph.CopyFrom(_assemble(blocks, "", 0))
            extra = next(blocks, None)
            if extra is not None:
                raise ModelError(f"no attribute names the graph {quote(extra.proto.name)}: give one listing a file")
            _check_sources(model.graph, frozenset())
    except (ValueError, OverflowError, RecursionError, text_format.ParseError) as error:
        raise ModelError(f"a value of the listing cannot be read ({quote(str(error))[1:-1]}): correct it") from None
    return model


def _message(error: UnexpectedInput) -> str:
    where = f"line {error.line}, column {error.column}"
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return "the listing ends too early: complete it"
    text = error.token if isinstance(error, UnexpectedToken) else ""
    if isinstance(error, UnexpectedCharacters):
        text = error.char
    return f"{where}: {quote(str(text)[:40])} does not belong here in a listing: correct the text at this place"


# ---- Graphs -----------------------------------------------------------------------------------


def _graph(tree: Tree[Token]) -> _Block:
    proto = GraphProto()
    proto.name = str(tree.children[0])[len("graph ") :]
    slots: list[tuple[_Slot, ...]] = []
    for child in tree.children[1:]:
        part = _tree(child)
        match part.data:
            case "value":
                _value(part, proto.input.add())
            case "defaulted":
                for value in part.children:
                    _initializer(_value(_tree(value), proto.input.add()), proto)
            case "initializers":
                for value in part.children:
                    _initializer(_value(_tree(value), ValueInfoProto()), proto)
            case "node":
                slots.append(_node(part, proto.node.add()))
            case _:
                _result(part, proto)
    return _Block(proto, tuple(it for it in slots if it))


def _body(tree: Tree[Token]) -> GraphProto:
    """The body alone: its inputs are those declared, else the names that nothing defines."""
    proto = GraphProto(name="graph")
    declared = False
    for child in tree.children:
        part = _tree(child)
        if part.data == "declared":
            declared = True
            for value in part.children:
                _value(_tree(value), proto.input.add())
        elif part.data == "node":
            slots = _node(part, proto.node.add())
            if slots:
                raise ModelError(f"the graph {quote(slots[0].name)} is not in the listing: give the whole listing")
        else:
            _result(part, proto)
    if not declared:
        defined = {name for node in proto.node for name in node.output}
        read = [name for node in proto.node for name in node.input] + [output.name for output in proto.output]
        for name in dict.fromkeys(name for name in read if name and name not in defined):
            proto.input.add(name=name)
    return proto


def _assemble(blocks: Iterator[_Block], wanted: str, depth: int) -> GraphProto:
    """The next graph with its nested graphs, which follow it."""
    block = next(blocks, None)
    if block is None:
        raise ModelError(f"the graph {quote(wanted)} is not in the listing: give the whole listing")
    if depth > MAX_DEPTH:
        raise ModelError(f"graphs lie more than {MAX_DEPTH} deep inside each other: flatten them")
    for slots in block.slots:
        open_ = {slot.name: slot for slot in slots}
        if len(open_) < len(slots):
            name = next(slot.name for slot in slots if open_[slot.name] is not slot)
            raise ModelError(f"two graphs of one node are both named {quote(name)}: give the model file instead")
        while open_:
            nested = _assemble(blocks, next(iter(open_)), depth + 1)
            slot = open_.pop(nested.name, None)
            if slot is None:
                raise ModelError(f"no attribute names the graph {quote(nested.name)}: give one listing a file")
            slot.into.CopyFrom(nested)
    return block.proto


def _check_sources(proto: GraphProto, visible: frozenset[str]) -> None:
    """Raise ModelError for a name of unknown source in a graph that is printed without its initializers."""
    given = {it.name for it in proto.input} | {it.name for it in proto.initializer}
    known = visible | given | {name for node in proto.node for name in node.output}
    if not proto.input:
        for name in (name for node in proto.node for name in node.input):
            if name and name not in known:
                raise ModelError(
                    f"{quote('%' + name)} has no source, and a listing omits the initializers of a graph without"
                    f" inputs, such as {quote(proto.name)}: give the model file instead"
                )
    for node in proto.node:
        for attribute in node.attribute:
            for nested in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
                _check_sources(nested, known)


def _result(tree: Tree[Token], proto: GraphProto) -> None:
    for name in _names(tree.children[0]):
        proto.output.add(name=name)


def _names(tree: Tree[Token] | Token | None) -> list[str]:
    return [] if tree is None else [str(token)[1:] for token in _tree(tree).children]


def _value(tree: Tree[Token], into: ValueInfoProto) -> ValueInfoProto:
    """A name with the type behind it: element type and dimensions, or the kind of a type that is no tensor."""
    name, *rest = (str(token) for token in tree.children)
    into.name = name.removeprefix("%")
    element, _, dims = rest[0][1:-1].partition(",") if rest else ("", "", "")
    element, dims = element.strip(), dims.strip()
    if element.startswith("Unknown type "):
        kind = element.removeprefix("Unknown type ")
        if kind in ("sequence_type", "optional_type", "map_type", "sparse_tensor_type", "opaque_type"):
            getattr(into.type, kind).SetInParent()
    elif element:
        if element not in _CODES:
            raise ModelError(f"{quote(element[:40])} is no element type: correct the type of {quote(name)}")
        tensor = into.type.tensor_type
        tensor.elem_type = _CODES[element]
        for text in _dims(dims) or ():
            dim = tensor.shape.dim.add()
            if text.lstrip("-").isdigit():
                dim.dim_value = int(text)
            elif text != "?":
                dim.dim_param = text
        if dims == "scalar":
            tensor.shape.SetInParent()
    return into


def _dims(text: str) -> Sequence[str] | None:
    """The dimensions that a text like Nx3x224 shows; None when it can be read in several ways.

    An "x" can be part of a name: it separates where a number, a "?" or nothing but one name stands on each side, and
    at least one side is no name.
    """
    parts = text.split("x")
    if text == "scalar" or not all(_DIM.fullmatch(part) for part in parts):
        return None
    named = [not (part == "?" or part.lstrip("-").isdigit()) for part in parts]
    return None if any(left and right for left, right in pairwise(named)) else parts


def _initializer(value: ValueInfoProto, proto: GraphProto) -> None:
    """An initializer without elements; its type is known when it is static."""
    tensor = value.type.tensor_type
    stored = proto.initializer.add(name=value.name)
    if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
        stored.data_type = tensor.elem_type
        stored.dims.extend(dim.dim_value for dim in tensor.shape.dim)


# ---- Nodes ------------------------------------------------------------------------------------


def _node(tree: Tree[Token], proto: NodeProto) -> tuple[_Slot, ...]:
    outputs, operator, *rest = tree.children
    proto.output.extend(_names(outputs))
    proto.op_type = str(operator)
    proto.input.extend(_names(rest[-1]))
    slots: list[_Slot] = []
    if len(rest) > 1:
        for child in _tree(rest[0]).children:
            name, setting = _tree(child).children
            slots.extend(_attribute(proto.attribute.add(name=str(name)), _tree(setting), proto.op_type))
    return tuple(slots)


def _attribute(proto: AttributeProto, setting: Tree[Token], operator: str) -> list[_Slot]:
    tokens = [token for token in setting.children if isinstance(token, Token)]
    if setting.data in ("special", "specials"):
        return _special(proto, tokens, operator, many=setting.data == "specials")
    literals = [_tree(child).children[0] for child in setting.children] if setting.data == "list" else tokens
    texts = [_token(literal) for literal in literals]
    many = "S" if setting.data == "list" else ""
    if any(text.type == "STRING" for text in texts):
        strings = [_string(text) for text in texts]
        proto.type = _code("STRING" + many)
        if None not in strings:
            values = [text for text in strings if text is not None]
            if many:
                proto.strings.extend(values)
            else:
                proto.s = values[0]
        return []
    kind = _kind(operator, proto.name)
    whole = all(re.fullmatch("-?[0-9]+", text) for text in texts)
    if whole and kind not in ("FLOAT", "FLOATS"):
        proto.type = _code("INT" + many)
        if many:
            proto.ints.extend(int(text) for text in texts)
        else:
            proto.i = int(texts[0])
        return []
    proto.type = _code("FLOAT" + many)
    if many:
        proto.floats.extend(float(text) for text in texts)
    else:
        proto.f = float(texts[0])
    return []


def _special(proto: AttributeProto, tokens: Sequence[Token], operator: str, *, many: bool) -> list[_Slot]:
    """A value between < and >: a graph or a type is kept, a tensor is elided."""
    first, plural = str(tokens[0]), "S" if many else ""
    if first.startswith("<graph "):
        proto.type = _code("GRAPH" + plural)
        names = [str(token)[len("<graph ") : -1] for token in tokens]
        return [_Slot(name, proto.graphs.add() if many else proto.g) for name in names]
    if first.startswith("<Type Proto "):
        proto.type = _code("TYPE_PROTO" + plural)
        for token in tokens:
            into = proto.type_protos.add() if many else proto.tp
            text_format.Parse(str(token)[len("<Type Proto ") : -1], into)
    elif first == "<Unknown>":
        proto.type = _code(_kind(operator, proto.name) or "UNDEFINED")
    else:
        proto.type = _code(_SPECIALS.get(first, "TENSOR") + plural)
    return []


def _string(token: Token) -> bytes | None:
    """The bytes of a printed string; None when the listing cuts it off."""
    if token.type != "STRING":
        raise ValueError(f"{token} among strings")
    try:
        text = ast.literal_eval(str(token))
    except SyntaxError:
        raise ValueError(f"{token} is no string") from None
    return None if _CUT.search(text) else str(text).encode()


def _code(kind: str) -> AttributeProto.AttributeType:
    """The number of a kind. onnx's stubs tell it from the `int` that it is when it runs."""
    return cast("AttributeProto.AttributeType", AttributeProto.AttributeType.Value(kind))


@cache
def _kind(operator: str, attribute: str) -> str:
    """The kind of an attribute by the newest schema of the operator that has it, "" when none has."""
    form = schema("", operator, newest_opset())
    while form is not None:
        if attribute in form.attributes:
            return form.attributes[attribute].kind
        form = schema("", operator, form.since_version - 1)
    return ""


def _tree(node: Tree[Token] | Token | None) -> Tree[Token]:
    if not isinstance(node, Tree):
        raise TypeError("listing.lark and its reader differ")
    return node


def _token(node: Tree[Token] | Token | None) -> Token:
    if not isinstance(node, Token):
        raise TypeError("listing.lark and its reader differ")
    return node
