"""The listing of a model: one node on one line, bodies and calls indented below; and the texts beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from sonnx.spec.library import specification
from sonnx.spec.parsed import ROOT

from ...errors import ModelError
from ...machine.spelling import attribute_name, attribute_text, constant_text, single, stated_type
from ...model.graph import Graph, GraphId, Model, Node, NodeId, TensorId
from ...model.path import Path as PathText
from ...model.path import operator_text, parse_path, print_path, quote
from ...model.schemas import operator_name
from ...operators.application import initializers
from ..timeline.names import function_called

SUFFIX: Final = ".sonnx.lst"
_VERSION: Final = 1
STOPS: Final = ("node", "call", "return")
"""The kinds of lines at which an execution can stand still."""


@dataclass(frozen=True, slots=True)
class Span:
    """Columns of a line, `end` exclusive. kind: operator, input, output, attribute or name. tensor: of which one."""

    kind: str
    start: int
    end: int
    tensor: TensorId | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line. kind: note, graph, body, call, input, initializer, node or return. graph: the graph that it stands in.

    call: the path of the call, for a line of that kind.
    """

    number: int
    text: str
    kind: str
    graph: GraphId | None = None
    node: NodeId | None = None
    spans: tuple[Span, ...] = ()
    call: str = ""


@dataclass(frozen=True)
class Listing:
    """The lines of a model, and the line of each node and of each graph's return."""

    lines: tuple[Line, ...]
    digest: str

    @property
    def text(self) -> str:
        """The whole text, each line ended."""
        return "".join(f"{line.text}\n" for line in self.lines)

    @cached_property
    def of_node(self) -> Mapping[NodeId, int]:
        """The number of the line of each node."""
        return {line.node: line.number for line in self.lines if line.kind == "node" and line.node is not None}

    @cached_property
    def of_return(self) -> Mapping[GraphId, int]:
        """The number of the return line of each graph."""
        return {line.graph: line.number for line in self.lines if line.kind == "return" and line.graph is not None}

    @cached_property
    def of_call(self) -> Mapping[str, int]:
        """The number of the line of each call, by its path."""
        return {line.call: line.number for line in self.lines if line.kind == "call"}

    @cached_property
    def of_name(self) -> Mapping[TensorId, int]:
        """The number of the line that gives a tensor its value or declares it."""
        lines: dict[TensorId, int] = {}
        for line in self.lines:
            for span in line.spans:
                if span.tensor is not None and span.kind in ("output", "name") and line.kind != "return":
                    lines.setdefault(span.tensor, line.number)
        return lines

    def stop_at(self, number: int) -> Line:
        """The line, or the first one behind it, at which an execution can stand still: of a node, a call or a return.
        A graph ends with its return, so it is a line of the same graph, or of one that begins behind the line."""
        return next(line for line in self.lines[max(number, 1) - 1 :] if line.kind in STOPS)


def listing(model: Model) -> Listing:
    """The listing of a model; loading has limited how deep its graphs lie in each other."""
    writer = _Writer(model)
    digest = model.files[0].sha256 if model.files else hashlib.sha256(model.content).hexdigest()
    name = model.files[0].name if model.files else ""
    writer.note(f"# sonnx listing {_VERSION}")
    writer.note(f"# model {quote(name)} sha256 {digest}")
    for domain, version in model.opsets:
        writer.note(f"# opset {quote(domain)} {version}")
    writer.graph(0, "graph", 0)
    return Listing(tuple(writer.lines), digest)


def write_listing(listing: Listing, path: Path) -> None:
    """The listing as a file."""
    path.write_text(listing.text, encoding="ascii", newline="\n")


def check_listing(listing: Listing, path: Path) -> None:
    """Raises ModelError when the file is not this listing: breakpoints would stand in the wrong lines."""
    try:
        same = path.read_text(encoding="ascii") == listing.text
    except UnicodeDecodeError:
        same = False
    if not same:
        raise ModelError(f"{quote(str(path))} is no listing of this model: write it again")


class _Writer:
    """Lines in order, each made of pieces whose columns are noted."""

    def __init__(self, model: Model) -> None:
        self.lines: list[Line] = []
        self._model = model

    def note(self, text: str) -> None:
        self.lines.append(Line(len(self.lines) + 1, text, "note"))

    def graph(self, g: GraphId, heading: str, depth: int) -> None:
        """A graph with its heading, bodies below their nodes."""
        graph = self._model.graphs[g]
        self._line(depth, "graph" if g == 0 else "body", g, [f"{heading} {quote(graph.name)}:"])
        types = graph.input_types or (None,) * len(graph.inputs)
        for t, stated in zip(graph.inputs, types, strict=True):
            declared = stated or self._model.tensors[t].declared
            self._line(depth + 1, "input", g, ["input ", self._tensor("name", t), f": {stated_type(declared)}"])
        for t, constant in initializers(graph):
            stored = f": {constant_text(constant)}"
            self._line(depth + 1, "initializer", g, ["initializer ", self._tensor("name", t), stored])
        self._nodes(graph, g, depth + 1)
        self._line(depth + 1, "return", g, ["return ", *self._tensors("output", graph.outputs)])

    def _nodes(self, graph: Graph, g: GraphId, depth: int) -> None:
        around = self._model.nodes[graph.holder].calls if graph.holder is not None else ()
        open_calls: tuple[str, ...] = ()
        for n in graph.nodes:
            node = self._model.nodes[n]
            calls = node.calls[len(around) :] if node.calls[: len(around)] == around else node.calls
            same = 0
            while same < min(len(calls), len(open_calls)) and calls[same] == open_calls[same]:
                same += 1
            for level in range(same, len(calls)):
                self._line(depth + level, "call", g, [f"call {single(calls[level])}:"], call=calls[level])
            open_calls = calls
            self._node(n, node, g, depth + len(calls))

    def _node(self, n: NodeId, node: Node, g: GraphId, depth: int) -> None:
        pieces: list[str | tuple[str, str, TensorId | None]] = []
        if node.outputs:
            pieces += [*self._tensors("output", node.outputs), " = "]
        pieces.append(("operator", operator_text(node.domain, node.op_type), None))
        pieces += ["(", *self._tensors("input", node.inputs), ")"]
        for name, attribute in node.attributes.items():
            if attribute.kind not in ("GRAPH", "GRAPHS"):
                pieces += [" ", ("attribute", f"{attribute_name(name)}={attribute_text(attribute)}", None)]
        pieces.append(f"  # {single(_tail(node))}")
        self._line(depth, "node", g, pieces, node=n)
        for name, body in node.bodies:
            self.graph(body, attribute_name(name), depth + 1)

    def _tensor(self, kind: str, t: TensorId) -> tuple[str, str, TensorId | None]:
        return kind, quote(self._model.tensors[t].name), t

    def _tensors(self, kind: str, row: Iterable[TensorId | None]) -> list[str | tuple[str, str, TensorId | None]]:
        pieces: list[str | tuple[str, str, TensorId | None]] = []
        for i, t in enumerate(row):
            pieces += [", "] if i else []
            pieces.append("_" if t is None else self._tensor(kind, t))
        return pieces

    def _line(
        self,
        depth: int,
        kind: str,
        graph: GraphId,
        pieces: Iterable[str | tuple[str, str, TensorId | None]],
        *,
        node: NodeId | None = None,
        call: str = "",
    ) -> None:
        text, spans = "  " * depth, []
        for piece in pieces:
            if isinstance(piece, str):
                text += piece
            else:
                what, part, tensor = piece
                spans.append(Span(what, len(text) + 1, len(text) + 1 + len(part), tensor))
                text += part
        self.lines.append(Line(len(self.lines) + 1, text.rstrip(), kind, graph, node, tuple(spans), call))


def _tail(node: Node) -> str:
    """The last part of the path of a node: its position, operator and name."""
    step = parse_path(node.path).steps[-1]
    return print_path(PathText((step,)))[1:]


# ---- Texts beside the listing ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Document:
    """A text. name: how it is called. line: of the listing, where it is taken from; 0 for none."""

    name: str
    text: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of an operator: the file, its SHA-256, and the line."""

    path: Path
    sha256: str
    line: int


def function_documents(model: Model, listing: Listing) -> tuple[Document, ...]:
    """For each function of the model the lines of the listing at its first call, in the order of the model."""
    first: dict[str, int] = {}
    for line in listing.lines if model.functions else ():
        if line.kind == "call":
            first.setdefault(function_called(line.call), line.number)
    documents = []
    for domain, name, overload in model.functions:
        function = operator_text(domain, name)
        at = first.get(function, 0)
        title = f"{function}:{overload}" if overload else function
        documents.append(Document(single(title), _block(listing, function, at), at))
    return tuple(documents)


def _block(listing: Listing, function: str, at: int) -> str:
    head = f"# function {single(function)}"
    if not at:
        return f"{head}, which is never called\n"
    call = listing.lines[at - 1]
    depth = _depth(call.text)
    lines = [f"{head}, as at its first call, line {at} of the listing", call.text[depth:]]
    for line in listing.lines[at:]:
        if _depth(line.text) <= depth:
            break
        lines.append(line.text[depth:])
    return "".join(f"{line}\n" for line in lines)


def _depth(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


# ---- The specification ------------------------------------------------------------------------


def definition_of(name: str, version: int) -> Definition | None:
    """The place where the specification, or a file that a user adds, defines an operator; None where none does."""
    meaning = specification().meanings.at(name, version)
    if meaning is None:
        return None
    file = meaning.span.file
    return Definition(_path(file), specification().digests[file], meaning.span.line)


def defining_files(model: Model) -> Mapping[Path, str]:
    """The files of the specification that define the operators of a model, with their SHA-256; of a definition that is
    stated as a difference also the files from which its statements are taken."""
    used = {(operator_name(it.domain, it.op_type), it.version) for it in model.nodes if it.version is not None}
    meanings = [it for it in (specification().meanings.at(name, version) for name, version in used) if it is not None]
    spans = [it.span for it in meanings] + [part.span for it in meanings for part in it.statements]
    files = {span.file for span in spans}
    return {_path(file): specification().digests[file] for file in sorted(files)}


def _path(file: str) -> Path:
    """The path of a file of the specification, or of one that a user adds."""
    return Path(file).absolute() if file in dict(specification().added) else ROOT / file
