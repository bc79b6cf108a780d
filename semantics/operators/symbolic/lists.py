"""The smt interpretation of operators, sequences and optionals whose length or entries are not all known."""

from __future__ import annotations

from dataclasses import replace

from sonnx.spec.language.syntax import Span

from ...errors import InternalError
from .numbers import Int, add, at_most, both, less, within
from .values import VARIES, Array, Dead, ElementType, Listed, Scope, Unranked, Value, axiom, demand, fresh


def entry(source: Listed, at: Int, span: Span, scope: Scope) -> Value:
    """The entry at a position, which must be one of the list."""
    demand(scope, "position", span, within(at, source.length))
    if source.told_apart and isinstance(at, int):
        return source.forms[at]
    found = one_of(source.forms, scope)
    if isinstance(found, Listed) and not source.kind.name.startswith("optional"):
        return replace(found, length=_size(scope), told_apart=False)  # each entry has a length of its own
    return found


def inserted(source: Listed, at: Int, item: Value, span: Span, scope: Scope) -> Listed:
    """The list with an entry more, before a position or at the end."""
    demand(scope, "contract", span, both(at_most(0, at), at_most(at, source.length)), "insert")
    length = add(source.length, 1)
    if source.told_apart and isinstance(at, int):
        return replace(source, length=length, forms=(*source.forms[:at], item, *source.forms[at:]))
    return replace(source, length=length, forms=(*source.forms, item), told_apart=False)


def dropped(source: Listed, at: Int, span: Span, scope: Scope) -> Listed:
    """The list without the entry at a position."""
    demand(scope, "contract", span, both(at_most(0, at), less(at, source.length)), "drop")
    length = add(source.length, -1)
    if source.told_apart and isinstance(at, int):
        return replace(source, length=length, forms=source.forms[:at] + source.forms[at + 1 :])
    return replace(source, length=length, told_apart=False)


def content(value: Value) -> Value:
    """What is found in an optional; a tensor or a sequence itself."""
    return value if isinstance(value, Listed) and value.kind.name.startswith("optional") else (value,)


def type_of(value: Value) -> ElementType:
    """The type of a value."""
    match value:
        case Array() | Unranked():
            return value.type
        case Listed():
            return value.kind
        case _:
            raise InternalError(f"{value!r} is no tensor, sequence or optional")


def one_of(forms: tuple[Value, ...], scope: Scope) -> Value:
    """Something that is like one of the forms."""
    if not forms:
        raise Dead
    first = forms[0]
    if all(isinstance(form, Array) for form in forms):
        arrays = [form for form in forms if isinstance(form, Array)]
        kinds = {array.type for array in arrays}
        kind = arrays[0].type if len(kinds) == 1 else ElementType("")
        if len({len(array.shape) for array in arrays}) > 1:
            return Unranked(kind)
        sizes = zip(*(array.shape for array in arrays), strict=True)
        shape = tuple(row[0] if len(set(row)) == 1 and row[0] != VARIES else _size(scope) for row in sizes)
        return Array("entry", shape, lambda _index, here: here.run.algebra.abstract(kind, here), kind)
    if all(isinstance(form, Array | Unranked) for form in forms):
        kinds = {type_of(form) for form in forms}
        return Unranked(type_of(first) if len(kinds) == 1 else ElementType(""))
    lists = [form for form in forms if isinstance(form, Listed)]
    if len(lists) < len(forms):
        raise InternalError("a tensor or a sequence")
    if len(lists) == 1:
        return lists[0]
    return Listed(lists[0].kind, _size(scope), tuple(form for found in lists for form in found.forms))


def _size(scope: Scope) -> Int:
    size = fresh(scope, "entry.size")
    axiom(scope, at_most(0, size))
    return size
