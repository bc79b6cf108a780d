"""Line breaking: a small document algebra. A group is printed on one line when it fits, else all its lines break."""

from __future__ import annotations

from dataclasses import dataclass

WIDTH = 110


@dataclass(frozen=True, slots=True)
class Line:
    """A line break, or `flat` when its group fits on the line."""

    flat: str = " "


@dataclass(frozen=True, slots=True)
class Nest:
    """The body, its line breaks indented by two more columns."""

    body: Doc


@dataclass(frozen=True, slots=True)
class Group:
    """The body, flat when it fits."""

    body: Doc


Doc = str | Line | Nest | Group | tuple["Doc", ...]


def separated(docs: list[Doc], separator: Doc) -> Doc:
    """The documents with a separator between them."""
    out: list[Doc] = []
    for position, doc in enumerate(docs):
        out += [separator, doc] if position else [doc]
    return tuple(out)


def layout(doc: Doc, column: int = 0, indent: int = 0) -> str:
    """The text of a document whose first line begins at `column`."""
    out: list[str] = []
    stack: list[tuple[int, bool, Doc]] = [(indent, False, doc)]
    while stack:
        margin, flat, item = stack.pop()
        match item:
            case str():
                out.append(item)
                column += len(item)
            case Line():
                if flat:
                    out.append(item.flat)
                    column += len(item.flat)
                else:
                    out.append("\n" + " " * margin)
                    column = margin
            case Nest(body):
                stack.append((margin + 2, flat, body))
            case Group(body):
                stack.append((margin, flat or _fits(body, WIDTH - column, stack), body))
            case tuple():
                stack.extend((margin, flat, part) for part in reversed(item))
    return "".join(out)


def _fits(doc: Doc, room: int, rest: list[tuple[int, bool, Doc]]) -> bool:
    """Whether the document fits flat, with what follows it up to the next possible line break."""
    todo: list[tuple[bool, Doc]] = [(flat, item) for _, flat, item in rest] + [(True, doc)]
    while todo:
        if room < 0:
            return False
        flat, item = todo.pop()
        match item:
            case str():
                room -= len(item)
            case Line():
                if not flat:
                    return True
                room -= len(item.flat)
            case Nest(body) | Group(body):
                todo.append((flat, body))
            case tuple():
                todo.extend((flat, part) for part in reversed(item))
    return room >= 0
