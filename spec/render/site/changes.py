"""The changes from one version of an operator to the next: in ONNX's schema, and in the text of its meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...elaborate.schema import FormalAttribute, FormalPort, Signature, default_text
from ...elaborate.versions import name_of
from ...language.syntax import Operator
from ..cards import Formula, header, statement_formula
from ..math import to_text

MARKS = {"": "required", "?": "optional", "*": "any number"}


def schema_changes(old: Signature, new: Signature) -> tuple[str, ...]:
    """Each difference between two versions of a schema, in a few words."""
    return (
        *_port_changes("input", old.inputs, new.inputs),
        *_port_changes("output", old.outputs, new.outputs),
        *_attribute_changes(old.attributes, new.attributes),
        *_type_changes(types(old), types(new)),
    )


def _port_changes(what: str, old: Sequence[FormalPort], new: Sequence[FormalPort]) -> Iterator[str]:
    before, after = ({port.name: port for port in ports} for ports in (old, new))
    yield from (f"{what} {name} removed" for name in before if name not in after)
    for name, port in after.items():
        if name not in before:
            yield f"{what} {name} added ({MARKS[port.mark]})"
        elif before[name].mark != port.mark:
            yield f"{what} {name}: {MARKS[port.mark]}, was {MARKS[before[name].mark]}"


def _attribute_changes(old: Mapping[str, FormalAttribute], new: Mapping[str, FormalAttribute]) -> Iterator[str]:
    yield from (f"attribute {name} removed" for name in sorted(old.keys() - new.keys()))
    yield from (f"attribute {name} added ({presence(new[name])})" for name in sorted(new.keys() - old.keys()))
    for name in sorted(old.keys() & new.keys()):
        for before, after in (
            (str(old[name].sort), str(new[name].sort)),
            (presence(old[name]), presence(new[name])),
        ):
            if before != after:
                yield f"attribute {name}: {after}, was {before}"


def _type_changes(old: Mapping[str, frozenset[str]], new: Mapping[str, frozenset[str]]) -> Iterator[str]:
    for name in sorted(old.keys() & new.keys()):
        changes = (("adds", new[name] - old[name]), ("loses", old[name] - new[name]))
        yield from (f"{name} {verb} {', '.join(sorted(changed))}" for verb, changed in changes if changed)


def presence(attribute: FormalAttribute) -> str:
    """The words on whether a node must state an attribute, and what holds when it does not."""
    if attribute.required:
        return "required"
    return f"default {default_text(attribute)}" if attribute.default else "optional"


def types(signature: Signature) -> dict[str, frozenset[str]]:
    """The types that each type variable stands for."""
    types_by_name: dict[str, frozenset[str]] = {}
    for port in (*signature.inputs, *signature.outputs):
        if port.allowed and port.allowed != {port.type}:
            types_by_name[port.type] = types_by_name.get(port.type, frozenset()) | port.allowed
    return types_by_name


# ---- Meanings ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a definition: `name` by which a difference refers to it ("" for the header), `text` all of it."""

    name: str
    text: str
    formula: Formula


@dataclass(frozen=True, slots=True)
class Pair:
    """Two parts side by side; None where one side has none. Equal parts in a row are one pair with their number."""

    old: Item | None
    new: Item | None
    alike: int = 0


def items(operator: Operator) -> dict[str, Item]:
    """The header and the statements of a definition, by their names."""
    named = [("", header(operator)), *((name_of(it), statement_formula(it)) for it in operator.statements)]
    return {name: Item(name, _text(shown), shown) for name, shown in named}


def _text(shown: Formula) -> str:
    return "\n".join((shown.remark, *(to_text(line.math) for line in shown.lines)))


def compare(old: Operator, new: Operator) -> tuple[Pair, ...]:
    """The parts of two definitions side by side, those of one name in one row, in the order of the newer one."""
    before, after = items(old), items(new)
    pairs: list[Pair] = []
    dropped = [name for name in before if name not in after]
    order = list(before)
    for name, item in after.items():
        while name in before and dropped and order.index(dropped[0]) < order.index(name):
            pairs.append(Pair(before[dropped.pop(0)], None))
        if name not in before or before[name].text != item.text:
            pairs.append(Pair(before.get(name), item))
        elif pairs and pairs[-1].alike:
            pairs[-1] = Pair(None, None, pairs[-1].alike + 1)
        else:
            pairs.append(Pair(None, None, 1))
    return (*pairs, *(Pair(before[name], None) for name in dropped))


def summary(pairs: Sequence[Pair]) -> str:
    """The numbers of parts that were changed, added, dropped and left alike."""
    changed = sum(pair.old is not None and pair.new is not None for pair in pairs)
    counts = (
        (changed, "changed"),
        (sum(pair.old is None and pair.new is not None for pair in pairs), "added"),
        (sum(pair.new is None and pair.old is not None for pair in pairs), "dropped"),
        (sum(pair.alike for pair in pairs), "alike"),
    )
    return ", ".join(f"{number} {what}" for number, what in counts if number)
