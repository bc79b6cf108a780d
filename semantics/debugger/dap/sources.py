"""The requests `source`, `loadedSources` and `locations`: the listing, the functions of the model, the specification.

The listing and the specification are files. The functions have references that are the same in the whole session.
`sonnx/values` is a request of this adapter's own: the protocol has none for what an editor shows inside of the text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...machine.trace.format import Json
from ...model.graph import TensorId
from ..display.listing import Document, Line, Span, defining_files, definition_of, function_documents
from ..inspection.items import EFFORT, SMALL, View, here, tensor_item
from ..timeline.history import Refused
from .adapter import Adapter, Body, Handler
from .launch import ListingFile
from .messages import Arguments
from .variables import Location

_LISTING: Final = 1
_MIME: Final = "text/x-sonnx-listing"
_SPECIFICATION: Final = "the specification of the operators"


def _source(adapter: Adapter, given: Arguments) -> Body:
    source = given.part("source")
    number = given.whole("sourceReference", 0) or source.whole("sourceReference", 0)
    path = source.text("path", "")
    if number == _LISTING or (not number and adapter.file is not None and path and adapter.file.is_at(path)):
        return {"content": adapter.session.listing.text, "mimeType": _MIME}
    if number:
        return {"content": _function(adapter, number).text, "mimeType": _MIME}
    if Path(path) in defining_files(adapter.session.model):
        return {"content": Path(path).read_text(encoding="utf-8"), "mimeType": "text/plain"}
    raise Refused("there is no such source: loadedSources names all")


def _loaded(adapter: Adapter, _given: Arguments) -> Body:
    session = adapter.session
    sources: list[Json] = [dict(_file(adapter).source)]
    for i, document in enumerate(function_documents(session.model, session.listing)):
        sources.append(
            {
                "name": document.name,
                "sourceReference": _LISTING + 1 + i,
                "origin": "function of the model, as at its first call",
                "presentationHint": "deemphasize",
            }
        )
    sources += [_defining(path, sha256) for path, sha256 in defining_files(session.model).items()]
    return {"sources": sources}


def _locations(adapter: Adapter, given: Arguments) -> Body:
    location = adapter.references.get(given.whole("locationReference"), Location, "location")
    if location.line is not None:
        first, end = _columns(adapter.session.listing.lines[location.line - 1], location)
        client = adapter.client
        return {
            "source": dict(_file(adapter).source),
            "line": client.line(location.line),
            "column": client.column(first),
            "endLine": client.line(location.line),
            "endColumn": client.column(end),
        }
    definition = None if location.operator is None else definition_of(*location.operator)
    if definition is None:
        raise Refused("the specification does not define this operator")
    return {
        "source": _defining(definition.path, definition.sha256),
        "line": adapter.client.line(definition.line),
        "column": adapter.client.column(1),
    }


_MOST_LINES: Final = 1000
"""So many lines are looked at for names at once."""


def _values(adapter: Adapter, given: Arguments) -> Body:
    """The names of tensors in lines of the listing: their places, what asks for just that tensor wherever the execution
    stands, and where the line declares it or gives it a value also the one that it has in the run at hand."""
    session, client = adapter.session, adapter.client
    first = client.own_line(given.whole("line"))
    last = client.own_line(given.whole("endLine", client.line(first)))
    lines = session.listing.lines[max(first, 1) - 1 : max(min(last, first + _MOST_LINES - 1), 0)]
    spans = [(line, span, span.tensor) for line in lines for span in line.spans if span.tensor is not None]
    view = View(effort=max(EFFORT // max(len(spans), 1), SMALL))
    return {"values": [_value(adapter, line, span, t, view) for line, span, t in spans]}


def _value(adapter: Adapter, line: Line, span: Span, t: TensorId, view: View) -> dict[str, Json]:
    session, client = adapter.session, adapter.client
    item = tensor_item(session, here(session, t), f"`{session.model.tensors[t].path}`", view)
    made: dict[str, Json] = {
        "name": item.name,
        "expression": item.expression,
        "line": client.line(line.number),
        "column": client.column(span.start),
        "endColumn": client.column(span.end),
    }
    return {**made, "value": item.value} if item.bytes and span.kind in ("name", "output") else made


def _columns(line: Line, location: Location) -> tuple[int, int]:
    """The columns of a location on its line: the name of the tensor, or all of the line."""
    for span in line.spans:
        if location.tensor is not None and span.tensor == location.tensor and span.kind in ("output", "name"):
            return span.start, span.end
    return len(line.text) - len(line.text.lstrip(" ")) + 1, len(line.text) + 1


def _file(adapter: Adapter) -> ListingFile:
    if adapter.file is None:
        raise Refused("nothing is debugged yet: send launch or attach first")
    return adapter.file


def _function(adapter: Adapter, number: int) -> Document:
    documents = function_documents(adapter.session.model, adapter.session.listing)
    if not 0 <= number - _LISTING - 1 < len(documents):
        raise Refused(f"there is no source {number}: loadedSources names all")
    return documents[number - _LISTING - 1]


def _defining(path: Path, sha256: str) -> dict[str, Json]:
    return {
        "name": path.name,
        "path": str(path),
        "origin": _SPECIFICATION,
        "presentationHint": "deemphasize",
        "checksums": [{"algorithm": "SHA256", "checksum": sha256}],
    }


HANDLERS = (
    Handler("source", _source),
    Handler("loadedSources", _loaded, {"supportsLoadedSourcesRequest": True}),
    Handler("locations", _locations),
    Handler("sonnx/values", _values),
)
