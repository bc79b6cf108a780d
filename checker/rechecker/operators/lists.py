"""Sequences and optionals of which not all is known: how many entries they have, and what an entry can be like."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from .formulas import Formula, Int, Symbol, add, chosen, poly
from .values import Dead, Entries, Listed, Open, Run, Tensor, Value

# ---- Names of element types ---------------------------------------------------------------------


NAMES = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
"""The element types by their codes."""


# ---- Lists --------------------------------------------------------------------------------------


VARIES = poly(Symbol("varies", "data", least=0))
"""Stands for a size that differs from entry to entry, in the forms of a list only."""
DIFFER = "entries of a sequence differ in the number of axes"


def kind_of(declared: onnx.TypeProto | None) -> str:
    """The type that a declaration states, "" where it leaves it open."""
    field = None if declared is None else declared.WhichOneof("value")
    if declared is None or field is None:
        return ""
    match field:
        case "tensor_type":
            return NAMES.get(declared.tensor_type.elem_type, "") if declared.tensor_type.elem_type else ""
        case "sequence_type":
            inner = kind_of(declared.sequence_type.elem_type)
            return f"seq({inner})" if inner else ""
        case "optional_type":
            inner = kind_of(declared.optional_type.elem_type)
            return f"optional({inner})" if inner else ""
        case "map_type":
            key, inner = NAMES.get(declared.map_type.key_type, ""), kind_of(declared.map_type.value_type)
            return f"map({key},{inner})" if declared.map_type.key_type and inner else ""
        case _:
            return ""


def is_optional(kind: str) -> bool:
    """A type is one of optionals."""
    return kind.startswith("optional(")


def length_of(value: Entries | Listed) -> Int:
    """The number of entries."""
    return len(value) if isinstance(value, Entries) else value.length


def forms_of(value: Entries | Listed) -> tuple[Value, ...]:
    """The forms of an entry."""
    return tuple(value) if isinstance(value, Entries) else value.forms


def bare(value: Value) -> Value:
    """An entry: its type and sizes."""
    match value:
        case Tensor():
            return Tensor("", value.kind, value.shape, reason=value.reason, on_data=value.on_data)
        case Entries():
            return Entries.of(value.kind, tuple(map(bare, value)))
        case Listed():
            return Listed(value.kind, value.length, tuple(dict.fromkeys(map(bare, value.forms))))
        case _:
            return value


def one_of(forms: Sequence[Value], run: Run) -> Value:
    """Something that is like one of the forms."""
    if not forms:
        raise Dead
    tensors = [form for form in forms if isinstance(form, Tensor)]
    if len(tensors) == len(forms):
        kind = tensors[0].kind if len({t.kind for t in tensors}) == 1 else ""
        shapes = [t.shape for t in tensors if t.shape is not None]
        if len(shapes) < len(tensors) or len({len(s) for s in shapes}) > 1:
            return Tensor(run.name("entry"), kind, None, reason=DIFFER)
        columns = zip(*shapes, strict=True)
        sizes = (c[0] if len(set(c)) == 1 and c[0] != VARIES else run.symbol("data", "entry.size", 0) for c in columns)
        return Tensor(run.name("entry"), kind, tuple(sizes))
    lists = [form for form in forms if isinstance(form, Entries | Listed)]
    if len(lists) < len(forms):
        raise Open("an entry is a tensor or a sequence", data=True)
    if len(lists) == 1 and (isinstance(lists[0], Entries) or is_optional(lists[0].kind)):
        return lists[0]
    alike = tuple(dict.fromkeys(form for one in lists for form in forms_of(one)))
    return Listed(lists[0].kind, run.symbol("data", "entry.length", 0), alike)


def inserted(source: Value, item: Value) -> Listed:
    """A list with one entry more, somewhere."""
    if not isinstance(source, Entries | Listed):
        raise Open("no sequence is known here")
    forms = tuple(dict.fromkeys((*map(bare, forms_of(source)), bare(item))))
    return Listed(source.kind, add(length_of(source), 1), forms)


def dropped(source: Value) -> Listed:
    """A list without one of its entries."""
    if not isinstance(source, Entries | Listed):
        raise Open("no sequence is known here")
    return Listed(source.kind, add(length_of(source), -1), tuple(dict.fromkeys(map(bare, forms_of(source)))))


def held(kind: str, value: Value) -> Entries:
    """The optional of this type that holds a value."""
    return Entries.of(kind, (bare(value),))


def either_list(condition: Formula, one: Value, other: Value) -> Value | Open:
    """The list that is the one where the condition holds, else the other. Beside an optional, a value that is none
    counts as one that holds it."""
    kinds = [v.kind for v in (one, other) if isinstance(v, Entries | Listed)]
    optional = next((kind for kind in kinds if is_optional(kind)), "")
    a, b = (v if not optional or _is_optional(v) else held(optional, v) for v in (one, other))
    if not isinstance(a, Entries | Listed) or not isinstance(b, Entries | Listed) or a.kind != b.kind:
        return Open("it has one type or another")
    x, y = length_of(a), length_of(b)
    forms = tuple(dict.fromkeys((*map(bare, forms_of(a)), *map(bare, forms_of(b)))))
    return Listed(a.kind, x if x == y else chosen(condition, x, y), forms)


def _is_optional(value: Value) -> bool:
    return isinstance(value, Entries | Listed) and is_optional(value.kind)
