"""What changes from one version of an operator to the next: in ONNX's schema, and in the text of its meaning."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ...elaborate.schema import FormalAttribute, FormalPort, Signature, default_text
from ...language.syntax import DEMANDS, Operator, Statement
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
        yield from (f"{name} {verb} {', '.join(sorted(found))}" for verb, found in changes if found)


def presence(attribute: FormalAttribute) -> str:
    """Whether a node must state an attribute, and what holds when it does not."""
    if attribute.required:
        return "required"
    return f"default {default_text(attribute)}" if attribute.default else "optional"


def types(signature: Signature) -> dict[str, frozenset[str]]:
    """The types that each type variable stands for."""
    found: dict[str, frozenset[str]] = {}
    for port in (*signature.inputs, *signature.outputs):
        if port.allowed and port.allowed != {port.type}:
            found[port.type] = found.get(port.type, frozenset()) | port.allowed
    return found


# ---- Meanings ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a definition: `head` says what it is about, `text` all of it."""

    head: tuple[str, ...]
    text: str
    formula: Formula


@dataclass(frozen=True, slots=True)
class Pair:
    """Two parts side by side; None where one side has none. Equal parts in a row are one pair with their number."""

    old: Item | None
    new: Item | None
    alike: int = 0


def items(operator: Operator) -> tuple[Item, ...]:
    """The header and the statements of a definition."""
    shown = header(operator)
    parts = [Item(("header",), _text(shown), shown)]
    for statement in operator.statements:
        shown = statement_formula(statement)
        parts.append(Item(_head(statement), _text(shown), shown))
    return tuple(parts)


def _head(statement: Statement) -> tuple[str, ...]:
    return (statement.kind, *statement.names, *((statement.doc,) if statement.kind in DEMANDS else ()))


def _text(shown: Formula) -> str:
    return "\n".join((shown.remark, *(to_text(line.math) for line in shown.lines)))


def compare(old: Operator, new: Operator) -> tuple[Pair, ...]:
    """The parts of two definitions side by side, in their order; those about the same thing stand in one row."""
    before, after = items(old), items(new)
    pairs: list[Pair] = []
    for tag, a, a_end, b, b_end in _matched([i.text for i in before], [i.text for i in after]):
        if tag == "equal":
            pairs.append(Pair(None, None, alike=a_end - a))
        else:
            pairs += _aligned(before[a:a_end], after[b:b_end], KEYS)
    return tuple(pairs)


KEYS: tuple[Callable[[Item], Hashable], ...] = (lambda item: item.head, lambda item: item.formula.lines)
"""What makes two different parts be about the same thing, the more telling first."""


def _aligned(old: Sequence[Item], new: Sequence[Item], keys: Sequence[Callable[[Item], Hashable]]) -> Iterator[Pair]:
    if not keys:
        yield from (Pair(item, None) for item in old)
        yield from (Pair(None, item) for item in new)
        return
    key, *others = keys
    for tag, a, a_end, b, b_end in _matched([key(i) for i in old], [key(i) for i in new]):
        if tag == "equal":
            yield from (Pair(x, y) for x, y in zip(old[a:a_end], new[b:b_end], strict=True))
        else:
            yield from _aligned(old[a:a_end], new[b:b_end], others)


def _matched(old: Sequence[Hashable], new: Sequence[Hashable]) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def summary(pairs: Sequence[Pair]) -> str:
    """How many parts were changed, added, dropped and left alike."""
    changed = sum(pair.old is not None and pair.new is not None for pair in pairs)
    counts = (
        (changed, "changed"),
        (sum(pair.old is None and pair.new is not None for pair in pairs), "added"),
        (sum(pair.new is None and pair.old is not None for pair in pairs), "dropped"),
        (sum(pair.alike for pair in pairs), "alike"),
    )
    return ", ".join(f"{number} {what}" for number, what in counts if number)
