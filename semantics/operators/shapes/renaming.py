"""From the names within a definition to those within the model: `indices.Int(0)` at a node is `t7.Int(0)` anywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from ...formulas.terms import Term
from ...model.graph import NodeId, TensorId
from ..symbolic.elements.known import Number
from ..symbolic.elements.opaque import Read
from ..symbolic.numbers import Int, Real
from .contents import Content, Held
from .examining import Examined, Site

ELEMENT = re.compile(r"t\d+\.(Int|Real|Bool)$")
"""The symbol of the elements of a tensor, which are the same wherever it is read."""


def tensors(site: Site) -> Mapping[str, str]:
    """The name in the model of each input, by its name in the definition."""
    stems: dict[str, str] = {}
    for position, port in enumerate(site.operator.inputs):
        if port.mark == "*":
            actual = [content for content in site.inputs[position:] if content is not None]
            stems |= {f"{port.name}.{k}": content.name for k, content in enumerate(actual)}
        elif position < len(site.inputs):
            content = site.inputs[position]
            stems |= {port.name: content.name} if content is not None else {}
    return stems


def names(n: NodeId, outputs: Sequence[TensorId | None], site: Site, examined: Examined) -> Mapping[str, str]:
    """The name in the model of each symbol that the examination of node n, with these outputs, has introduced."""
    symbols, stems = examined.symbols, tensors(site)
    given = {}
    ports = site.operator.outputs
    for position, t in enumerate(outputs):
        if ports and t is not None:
            port, number = ports[min(position, len(ports) - 1)], position - len(ports) + 1
            given[f"{port.name}.{number}" if port.mark == "*" else port.name] = f"t{t}"
    found: dict[str, str] = {}
    for t, content in zip(outputs, examined.outputs, strict=True):
        for axis, size in enumerate((content.shape if content is not None else None) or ()):
            if t is not None and isinstance(size, Term) and not size.args and size.op in symbols:
                found.setdefault(size.op, f"t{t}.size.{axis}")  # what data decide is called by the size that it is
    for symbol in symbols.keys() - found.keys():
        if ELEMENT.match(symbol):
            continue
        stem, _, sort = symbol.rpartition(".")
        part = re.fullmatch(r"(.+)\.(size|entry)\.(\d+)", symbol)
        if part is not None and part[1] in given:
            found[symbol] = f"{given[part[1]]}.{part[2]}.{part[3]}"
        else:
            found[symbol] = f"{stems[stem]}.{sort}" if stem in stems else f"n{n}.{symbol}"
    return found


def renamed(examined: Examined, new: Mapping[str, str], stems: Mapping[str, str] | None = None) -> Examined:
    """The same with other names of symbols. stems: of tensors whose elements are spoken of."""
    stems = stems or {}
    if not new and not stems:
        return examined
    return Examined(
        tuple(
            replace(
                d,
                goal=None if d.goal is None else _term(d.goal, new),
                facts=tuple(_term(f, new) for f in d.facts),
                about=None if d.about is None else _term(d.about, new),
            )
            for d in examined.demands
        ),
        tuple(None if content is None else _content(content, new, stems) for content in examined.outputs),
        tuple(_term(fact, new) for fact in examined.facts),
        {new.get(name, name): signature for name, signature in examined.symbols.items()},
    )


def _content(content: Content, new: Mapping[str, str], stems: Mapping[str, str]) -> Content:
    shape = content.shape
    if shape is not None:
        shape = tuple(_term(n, new) if isinstance(n, Term) else n for n in shape)
    entries = content.entries
    if entries is not None:
        entries = tuple(_number(item, new, stems) for item in entries)
    law = content.law
    if law is not None:
        variables, term = law
        law = tuple(new.get(v, v) for v in variables), cast("Int | Read", _number(term, new, stems))
    held = content.held
    if held is not None:
        told = None if held.entries is None else tuple(_content(entry, new, stems) for entry in held.entries)
        length = _term(held.length, new) if isinstance(held.length, Term) else held.length
        held = Held(length, told, tuple(_content(form, new, stems) for form in held.like))
    return replace(content, shape=shape, entries=entries, law=law, held=held)


def _number(item: Number | None, new: Mapping[str, str], stems: Mapping[str, str]) -> Number | None:
    match item:
        case Read(name, index):
            return Read(stems.get(name, name), tuple(_term(i, new) if isinstance(i, Term) else i for i in index))
        case Term():
            return _term(item, new)
        case Real(inner):
            return Real(_term(inner, new))
        case _:
            return item


def _term(term: Term, new: Mapping[str, str]) -> Term:
    """A term with other symbols, bound ones included: they are named as they stand."""
    args = tuple(
        _term(part, new) if isinstance(part, Term) else new.get(part, part) if isinstance(part, str) else part
        for part in term.args
    )
    op = new.get(term.op, term.op)
    return term if op == term.op and args == term.args else Term(op, args)


def mentioned(term: Term) -> frozenset[str]:
    """The operators and symbols of a term."""
    found = {term.op}
    for part in term.args:
        if isinstance(part, Term):
            found |= mentioned(part)
        elif isinstance(part, str):
            found.add(part)
    return frozenset(found)
