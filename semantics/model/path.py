"""Paths: the one way to name graphs, nodes, tensors, ports and calls in reports, certificates, listings and traces.

    graph  ::= "/" | node "." attribute [ "[" INDEX "]" ] [ "@" ITERATION ]
    node   ::= prefix INDEX ":" OPERATOR [ "(" quoted ")" ]
    tensor ::= prefix quoted
    port   ::= node ">" INDEX | node "<" INDEX
    prefix ::= "/" | graph "/" | node "!"

INDEX of a node is its position in the list of the file; "!" enters the model-local function that the node calls.
A name is a JSON string of printable ASCII without < > &, so a path is inert in a terminal, in HTML and in logs.
An operator or attribute name is written bare when it is a plain identifier, quoted otherwise; the domain in front of
an operator may have dots, the operator may not, or /0:Loop.body could be read in two ways.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Final

from .graph import GraphId, Model, NodeId, TensorId

_BARE_OPERATOR: Final = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_.]*::)?[A-Za-z_][A-Za-z0-9_]*")
_BARE_ATTRIBUTE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INERT: Final = re.compile(r"[ !#-%'-;=?-\[\]-~]*")  # printable ASCII but " & < > \
_UNSAFE: Final = re.compile(r"[^ -~]|[\"\\<>&]")
_QUOTED: Final = re.compile(r'"(?:[ !#-%\'-;=?-\[\]-~]|\\["\\]|\\u[0-9a-f]{4})*"')
_INDEX: Final = re.compile(r"0|[1-9][0-9]*", re.ASCII)


# ---- Printing ---------------------------------------------------------------------------------


def quote(name: str) -> str:
    """The name as a JSON string: " and \\ behind a backslash, all that is not inert ASCII as \\uXXXX."""
    return f'"{name}"' if _INERT.fullmatch(name) else f'"{_UNSAFE.sub(_escape, name)}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in '"\\':
        return "\\" + char
    code = ord(char)
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
    return f"\\u{code:04x}"


def operator_text(domain: str, op_type: str) -> str:
    """An operator as a path shows it: bare in ONNX's own domain, domain::name in others, quoted when not plain."""
    text = f"{domain}::{op_type}" if domain else op_type
    return text if _BARE_OPERATOR.fullmatch(text) else quote(text)


def node_path(prefix: str, index: int, operator: str, name: str) -> str:
    """The path of the node at a position; operator is an `operator_text`."""
    return f"{prefix}{index}:{operator}({quote(name)})" if name else f"{prefix}{index}:{operator}"


def body_path(node: str, attribute: str, index: int | None = None) -> str:
    """The path of a graph held as an attribute; index where the attribute is a list of graphs."""
    text = attribute if _BARE_ATTRIBUTE.fullmatch(attribute) else quote(attribute)
    return f"{node}.{text}" if index is None else f"{node}.{text}[{index}]"


# ---- Paths as data ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Body:
    """The step from a node into a graph that it holds. iteration: which run of the body, None for the graph itself."""

    attribute: str
    index: int | None = None
    iteration: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """The step from a node into the function that it calls."""


@dataclass(frozen=True, slots=True)
class Step:
    """A node of the list at hand, and the step taken from it; None when the path ends or turns to a port here."""

    index: int
    operator: str
    name: str = ""
    into: Body | Call | None = None


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output position of the node at which the path ends."""

    output: bool
    index: int


@dataclass(frozen=True, slots=True)
class Path:
    """A path taken apart. No steps: the main graph. tensor: the name of a tensor of the graph or call reached."""

    steps: tuple[Step, ...] = ()
    tensor: str | None = None
    port: Port | None = None


def print_path(path: Path) -> str:
    """The text of a path; the inverse of `parse_path`."""
    text = prefix = "/"
    for step in path.steps:
        operator = step.operator if _BARE_OPERATOR.fullmatch(step.operator) else quote(step.operator)
        text = node_path(prefix, step.index, operator, step.name)
        if isinstance(step.into, Body):
            text = body_path(text, step.into.attribute, step.into.index)
            text = text if step.into.iteration is None else f"{text}@{step.into.iteration}"
            prefix = text + "/"
        elif step.into is not None:
            prefix = text + "!"
    if path.tensor is not None:
        return prefix + quote(path.tensor)
    return text if path.port is None else f"{text}{'>' if path.port.output else '<'}{path.port.index}"


def parse_path(text: str) -> Path:
    """The path that a text spells. Raises ValueError, one line with the column, for what `print_path` never prints."""
    if not text.startswith("/"):
        raise _error(text, 0, "a path begins with /")
    steps: list[Step] = []
    at = 1
    while True:
        if text.startswith('"', at):
            name, at = _name(text, at)
            return _ended(Path(tuple(steps), name), text, at)
        if at == len(text) and not steps:
            return Path()
        index, at = _index(text, at)
        at = _expect(text, at, ":")
        operator, at = _name_or(text, at, _BARE_OPERATOR, "an operator")
        name = ""
        if text.startswith("(", at):
            name, at = _name(text, at + 1)
            if not name:
                raise _error(text, at, "an empty name is left out")
            at = _expect(text, at, ")")
        step = Step(index, operator, name)
        mark = text[at : at + 1]
        if mark == "!":
            steps.append(replace(step, into=Call()))
            at += 1
        elif mark == ".":
            body, at = _body(text, at + 1)
            steps.append(replace(step, into=body))
            if at == len(text):
                return Path(tuple(steps))
            at = _expect(text, at, "/")
        elif mark and mark in "<>":
            position, at = _index(text, at + 1)
            return _ended(Path((*steps, step), port=Port(mark == ">", position)), text, at)
        else:
            return _ended(Path((*steps, step)), text, at)


def _body(text: str, at: int) -> tuple[Body, int]:
    attribute, at = _name_or(text, at, _BARE_ATTRIBUTE, "an attribute")
    index = iteration = None
    if text.startswith("[", at):
        index, at = _index(text, at + 1)
        at = _expect(text, at, "]")
    if text.startswith("@", at):
        iteration, at = _index(text, at + 1)
    return Body(attribute, index, iteration), at


def _name(text: str, at: int) -> tuple[str, int]:
    match = _QUOTED.match(text, at)
    if match is None:
        raise _error(text, at, "expected a quoted name")
    try:
        name: str = json.loads(match[0])
        name.encode()
    except ValueError:
        raise _error(text, at, "this is no name") from None
    if quote(name) != match[0]:
        raise _error(text, at, f"this name is spelled {quote(name)}")
    return name, match.end()


def _name_or(text: str, at: int, bare: re.Pattern[str], what: str) -> tuple[str, int]:
    if text.startswith('"', at):
        name, end = _name(text, at)
        if bare.fullmatch(name):
            raise _error(text, at, f"{name} is written without quotes")
        return name, end
    match = bare.match(text, at)
    if match is None:
        raise _error(text, at, f"expected {what}")
    return match[0], match.end()


def _index(text: str, at: int) -> tuple[int, int]:
    match = _INDEX.match(text, at)
    if match is None or len(match[0]) > 18:
        raise _error(text, at, "expected a position: 0, 1, ...")
    return int(match[0]), match.end()


def _expect(text: str, at: int, char: str) -> int:
    if not text.startswith(char, at):
        raise _error(text, at, f"expected {char}")
    return at + 1


def _ended(path: Path, text: str, at: int) -> Path:
    if at != len(text):
        raise _error(text, at, "the path should end here")
    return path


def _error(text: str, at: int, message: str) -> ValueError:
    shown = text if len(text) <= 80 else text[:80] + "..."
    return ValueError(f"path {quote(shown)}, column {at + 1}: {message}")


# ---- Finding the element ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GraphPlace:
    """A graph of the model, in the named iterations of the bodies on the way (None: not said)."""

    graph: GraphId
    iterations: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class NodePlace:
    """A node, or a port of it."""

    node: NodeId
    port: Port | None = None
    iterations: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """A tensor."""

    tensor: TensorId
    iterations: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class CallPlace:
    """A call of a model-local function: the nodes that it was expanded to."""

    nodes: tuple[NodeId, ...]
    iterations: tuple[int | None, ...] = ()


Place = GraphPlace | NodePlace | TensorPlace | CallPlace


def resolve(model: Model, text: str) -> Place | None:
    """The element of the model that a path names, None when there is none. Raises ValueError for text that is no path.

    A call without nodes, and a port of a call, name nothing.
    """
    path = parse_path(text)
    iterations = tuple(step.into.iteration for step in path.steps if isinstance(step.into, Body))
    plain = print_path(Path(tuple(_without_iteration(step) for step in path.steps), path.tensor))
    if path.tensor is not None:
        return next((TensorPlace(t, iterations) for t, it in enumerate(model.tensors) if it.path == plain), None)
    if not path.steps or path.steps[-1].into is not None:
        return next((GraphPlace(g, iterations) for g, it in enumerate(model.graphs) if it.path == plain), None)
    for n, node in enumerate(model.nodes):
        if node.path == plain:
            size = 0 if path.port is None else len(node.outputs if path.port.output else node.inputs)
            known = path.port is None or path.port.index < size
            return NodePlace(n, path.port, iterations) if known else None
    expanded = tuple(n for n, node in enumerate(model.nodes) if plain in node.calls)
    return CallPlace(expanded, iterations) if expanded and path.port is None else None


def _without_iteration(step: Step) -> Step:
    return replace(step, into=replace(step.into, iteration=None)) if isinstance(step.into, Body) else step
