"""Texts beside the listing: one for each function of the model, and where the specification defines the operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sonnx.spec.language.syntax import Operator
from sonnx.spec.library import specification
from sonnx.spec.parsed import ROOT

from ...model.graph import Model
from ...model.path import operator_text
from ...model.schemas import normal_domain
from ..timeline.names import function_called
from .listing import Listing, single


@dataclass(frozen=True, slots=True)
class Document:
    """A text. name: how it is called. line: of the listing, where it is taken from; 0 for none."""

    name: str
    text: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Definition:
    """Where an operator is defined: the file, its SHA-256, and the line."""

    path: Path
    sha256: str
    line: int


def function_documents(model: Model, listing: Listing) -> tuple[Document, ...]:
    """For each function of the model the lines of the listing at its first call, in the order of the model."""
    first: dict[str, int] = {}
    for line in listing.lines if model.functions else ():
        if line.kind == "call":
            first.setdefault(function_called(line.call), line.number)
    found = []
    for domain, name, overload in model.functions:
        function = operator_text(domain, name)
        at = first.get(function, 0)
        title = f"{function}:{overload}" if overload else function
        found.append(Document(single(title), _block(listing, function, at), at))
    return tuple(found)


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
    """Where the specification defines an operator of ONNX's own domain; None where it does not."""
    meaning = _meaning(name, version)
    if meaning is None:
        return None
    file = meaning.span.file
    return Definition(ROOT / file, specification().digests[file], meaning.span.line)


def _meaning(name: str, version: int) -> Operator | None:
    return next((it for it in specification().operators.get(name, ()) if it.first <= version <= it.last), None)


def defining_files(model: Model) -> Mapping[Path, str]:
    """The files of the specification that define the operators of a model, with their SHA-256; of a definition that is
    stated as a difference also the files from which its statements are taken."""
    used = {(it.op_type, it.version) for it in model.nodes if it.version is not None and not normal_domain(it.domain)}
    meanings = [it for it in (_meaning(name, version) for name, version in used) if it is not None]
    files = {part.span.file for it in meanings for part in (it, *it.statements)}
    return {ROOT / file: specification().digests[file] for file in sorted(files)}
