"""What a node gives: shapes as small terms, small tensors element by element, constants computed."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

import numpy as np
from sonnx.spec.language.syntax import Port

from ...errors import InternalError, Unsupported
from ...formulas.terms import FALSE, TRUE, Term, weight
from ...model.elements import dtype_of
from ...model.payload import BITS
from ..application import Application, AttributeData, Outputs
from ..symbolic.elements.known import Number
from ..symbolic.elements.opaque import Chosen, Read
from ..symbolic.numbers import Int, both, opposite, within
from ..symbolic.statements import Meaning
from ..symbolic.substitution import substitute_term
from ..symbolic.values import Array, Dead, Element, ElementType, Listed, Scope, Split, Undefined, Unranked, Value
from .contents import HERE, SMALL, Content, Held, constant, places
from .examining import FOLDED, LARGE, Examining, Site, learn
from .renaming import mentioned


def outputs(walk: Examining, meaning: Meaning, reason: str) -> tuple[Content | None, ...]:
    """What is known of the outputs by position, None for one that is not asked for. reason: why some are open."""
    values: list[Value | None] = []
    ports: list[Port] = []
    for port in walk.site.operator.outputs:
        value = meaning.outputs.get(port.name)
        listed = list(value) if port.mark == "*" and type(value) is tuple else [value]
        values += listed
        ports += [port] * len(listed)
    found: list[Content | None] = []
    folded = None if walk.violated else _folded(walk.site, values)
    for position, named in enumerate(walk.site.outputs):
        value = values[position] if position < len(values) else None
        if not named:
            found.append(None)
        elif folded is not None and position < len(folded) and folded[position] is not None:
            found.append(folded[position])
        elif walk.violated or value is None:
            found.append(Content("", "", None, reason=reason, made=walk.made, dead=walk.violated))
        else:
            kind = walk.env.get(ports[position].type) if position < len(ports) else None
            found.append(_any(walk, value, kind.name if isinstance(kind, ElementType) else ""))
    return tuple(found)


def _any(walk: Examining, value: Value, kind: str = "") -> Content:
    """A tensor, sequence or optional. kind: its type, where the value does not say it."""
    match value:
        case Array():
            return _content(walk, value)
        case Unranked():
            element = value.type.name if value.type.name in BITS or value.type.name == "string" else ""
            return Content("", element, None, reason="entries of a sequence differ in the number of axes", made=HERE)
        case Listed():
            made = tuple(_entry_of(walk, form) for form in value.forms)
            held = (
                Held(value.length, made) if value.told_apart else Held(value.length, None, tuple(dict.fromkeys(made)))
            )
            return Content("", value.kind.name, None, held=held)
        case tuple():
            return Content("", kind, None, held=Held(len(value), tuple(_entry_of(walk, form) for form in value)))
        case _:
            raise InternalError(f"{value!r} is no tensor, sequence or optional")


def _entry_of(walk: Examining, value: Value) -> Content:
    """What is known of an entry: its type and sizes."""
    if not isinstance(value, Array):
        return _any(walk, value)
    element = value.type.name if value.type.name in BITS or value.type.name == "string" else ""
    return Content("", element, value.shape)


def _content(walk: Examining, value: Array) -> Content:
    element = value.type.name if value.type.name in BITS or value.type.name == "string" else ""
    shape = tuple(simple(walk, n, f"{value.name}.size.{axis}") for axis, n in enumerate(value.shape))
    entries = _entries(walk, value)
    if entries is not None:
        entries = tuple(
            simple(walk, item, f"{value.name}.entry.{k}" + (".Int" if isinstance(item, Term) and of_data(item) else ""))
            if isinstance(item, int | Term)
            else item
            for k, item in enumerate(entries)
        )
    if entries is not None and all(isinstance(item, int) for item in entries):
        data = np.array(entries, object).reshape(cast("tuple[int, ...]", value.shape)).astype(dtype_of(element))
        return Content("", element, value.shape, None, data)
    return Content("", element, shape, entries, law=None if entries is not None else _law(walk, value))


def _law(walk: Examining, value: Array) -> tuple[tuple[str, ...], Int | Read] | None:
    """What stands at any index of a tensor of integers, where that is a number: of ArgMax a position, for instance."""
    run = walk.run
    if "int" not in value.type.name or not value.shape:
        return None
    variables = tuple(f"{value.name}.at.{axis}" for axis in range(len(value.shape)))
    index = tuple(map(Term, variables))
    kept = dict(run.symbols)
    try:
        in_range = both(*(within(i, n) for i, n in zip(index, value.shape, strict=True)))
        item = value.read(index, Scope(walk.env, run, bound=variables).under(in_range))
        number = item.value if isinstance(item, Element) else item
        if isinstance(item, Element) and isinstance(number, Read):
            place = run.algebra.lift("Int", item, Scope(walk.env, run, bound=variables).under(in_range))
            if not isinstance(place, Term) or weight(place) > LARGE:
                run.symbols = kept
                return None
            learn(walk, *run.axioms, *run.assumed)
            return variables, number
        if isinstance(number, int) or (isinstance(number, Term) and weight(number) <= LARGE):
            learn(walk, *run.axioms, *run.assumed)
            return variables, number
        run.symbols = kept
    except (Dead, Undefined, Split, Unsupported, InternalError):
        run.symbols = kept
    finally:
        run.axioms.clear()
        run.assumed.clear()
    return None


def simple(walk: Examining, number: Int, name: str) -> Int:
    """A size or entry as a small term: alternatives that the facts decide are decided, others get a symbol."""
    number = _chosen(walk, number) if isinstance(number, Term) else number
    if not isinstance(number, Term) or (weight(number) <= LARGE and not branches(number) and not of_data(number)):
        return number
    if number.op in TRUTHS:
        return number
    walk.run.symbols[name] = (0, "Int")
    learn(walk, Term("=", (Term(name), number)))
    return Term(name)


TRUTHS = frozenset({"and", "or", "not", "=", "<=", "iff", "=>", "forall", "exists"})


def _chosen(walk: Examining, term: Term) -> Int:
    while isinstance(term, Term):
        found = _branch(term)
        if found is None:
            return term
        condition = cast("Term", found.args[0])
        if not walk.possible((*walk.facts, condition), walk.run.symbols):
            term = cast("Term", substitute_term(term, found, cast("Int", found.args[2])))
        elif not walk.possible((*walk.facts, opposite(condition)), walk.run.symbols):
            term = cast("Term", substitute_term(term, found, cast("Int", found.args[1])))
        else:
            return term
    return term


def of_data(term: Term) -> bool:
    """Whether a term is about elements of tensors: as a size it gets a symbol of its own, since sizes are never wrapped
    around."""
    return any(name.rpartition(".")[2] in SORTS for name in mentioned(term))


SORTS = frozenset({"Int", "Real", "Bool"})


def _branch(term: Term) -> Term | None:
    """An alternative in a term, an innermost one."""
    for part in term.args:
        found = _branch(part) if isinstance(part, Term) else None
        if found is not None:
            return found
    return term if term.op == "ite" else None


def branches(term: Term) -> bool:
    """Whether a term has alternatives."""
    return _branch(term) is not None


def _folded(site: Site, values: Sequence[Value | None]) -> tuple[Content | None, ...] | None:
    """The outputs computed by the ieee interpretation, where all inputs are constants and the outputs small."""
    if any(c is not None and c.data is None for c in site.inputs):
        return None
    for value in values:
        if not isinstance(value, Array):
            return None
        sizes = [n for n in value.shape if isinstance(n, int)]
        if len(sizes) < len(value.shape):  # the data decide it: about as large as they are
            sizes = [sum(c.data.size for c in site.inputs if c is not None and c.data is not None)]
        if prod(sizes) > FOLDED:
            return None
    attributes: dict[str, AttributeData] = {}
    for name, data in site.attributes.items():
        if isinstance(data, Term) or (isinstance(data, tuple) and any(isinstance(part, Term) for part in data)):
            return None  # a symbol stands for it
        attributes[name] = cast("AttributeData", data)
    from ..compiled import ieee

    inputs = tuple(None if c is None else c.data for c in site.inputs)
    try:
        done = ieee.apply(
            Application(site.operator.name, site.version, inputs, attributes, site.outputs, 64 << 20)
        )
    except (Unsupported, MemoryError):
        return None
    if not isinstance(done, Outputs) or any(mask is not None for mask in done.free):
        return None
    return tuple(None if v is None or not hasattr(v, "dtype") else constant("", v) for v in done.values)  # type: ignore[arg-type]


def _entries(walk: Examining, value: Array) -> tuple[Number | None, ...] | None:
    """The elements of a small tensor of integers or truth values, as far as they follow from what is known."""
    kind = value.type.name
    if not (kind in BITS and ("int" in kind or kind == "bool")):
        return None
    size = 1
    for n in value.shape:
        if isinstance(n, Term):
            return None
        size *= n
    if size > SMALL:
        return None
    found = tuple(_entry(walk, value, index) for index in places(value.shape))
    return found if any(e is not None for e in found) else None


def _entry(walk: Examining, value: Array, index: tuple[Int, ...]) -> Number | None:
    run = walk.run
    kept, run.symbols = run.symbols, dict(run.symbols)
    try:
        item = value.read(index, Scope(walk.env, run))
        number = item.value if isinstance(item, Element) else item
        if isinstance(item, Element) and isinstance(number, Chosen) and "int" in item.type.name:
            return _alternatives(walk, run.algebra.lift("Int", item, Scope(walk.env, run)), kept)
        if not index and isinstance(number, Term) and "int" in value.type.name and weight(number) <= LARGE:
            # A single element may be a position that the operator chooses: it keeps its symbol, as in a law.
            kept |= run.symbols
            learn(walk, *run.axioms, *run.assumed)
    except (Dead, Undefined, Split, Unsupported, InternalError):
        return None
    finally:
        fresh, run.symbols = run.symbols.keys() - kept.keys(), kept
        run.axioms.clear()
        run.assumed.clear()
    if isinstance(number, Read) and all(isinstance(place, int) for place in number.index):
        return number
    if isinstance(number, Term) and (number in (TRUE, FALSE)):
        return int(number == TRUE)
    if isinstance(number, int) or (isinstance(number, Term) and not _mentions(number, fresh)):
        return number
    return None


def _alternatives(walk: Examining, number: object, kept: dict[str, tuple[int, str]]) -> Term | None:
    """One element of a tensor or another, in terms of those; None where it is about anything else."""
    run = walk.run
    fresh = run.symbols.keys() - kept.keys()
    own = {name for name in fresh if isinstance(number, Term) and name in mentioned(number)}
    if not isinstance(number, Term) or not all(name.endswith(".Int") for name in own) or weight(number) > LARGE:
        return None
    kept |= {name: run.symbols[name] for name in own}
    learn(walk, *(fact for fact in run.axioms if not mentioned(fact) & (fresh - own)))
    return number


def _mentions(term: Term, names: set[str]) -> bool:
    return term.op in names or any(isinstance(part, Term) and _mentions(part, names) for part in term.args)
