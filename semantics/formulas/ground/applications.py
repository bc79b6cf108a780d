"""The smt interpretation, applications: facts become symbols, definitions are expanded, inductive atoms collected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from sonnx.spec.elaborate.core import Core
from sonnx.spec.language.syntax import BOOL, INT, FunctionDeclaration

from ...errors import InternalError
from ...facts.structure import Element, Key, SetTable, Unknown, Value, ValueTable
from ..terms import FALSE, TRUE, Argument, Term
from .meanings import Context, Env, Family, Item, Listing, Meaning, Scalar, Truth, family, meaning, rule, scalar, under
from .symbols import atom

KeyOf = Callable[[Env], Key | None]
"""The key of a table, None when an argument is not known."""


@rule("fact")
def _fact(core: Core, context: Context) -> Meaning:
    declaration = context.cores.functions[core.name]
    table, key = context.work.structure.table(core.name), _key(core, context)
    if isinstance(table, SetTable):
        return _set(declaration, table, key, context)
    if declaration.result.name == "list":
        return _list(declaration, table, key, context)
    return _value(declaration, table, key, context)


def _key(core: Core, context: Context) -> KeyOf:
    parts = [scalar(argument, context) for argument in core.parts]
    looked_up = [
        argument.name or "len"
        for part, argument in zip(parts, core.parts, strict=True)
        if not part.rigid and argument.head in ("fact", "define", "size")
    ]
    if not looked_up:
        return _joined(parts)
    joined, resolved = _joined(parts), context.work.symbols.resolved
    facts = dict.fromkeys(looked_up)

    def key(env: Env) -> Key | None:
        resolved.update(facts)
        return joined(env)

    return key


def _joined(parts: Sequence[Scalar]) -> KeyOf:
    if len(parts) == 1:
        return parts[0].value

    def several(env: Env) -> Key | None:
        values = [part.value(env) for part in parts]
        known = [value for value in values if value is not None]
        return tuple(known) if len(known) == len(values) else None

    return several


@rule("inductive")
def _inductive(core: Core, context: Context) -> Meaning:
    name, symbols = core.name, context.work.symbols
    if context.polarity != 1:
        raise InternalError(f"the inductive predicate {name} stands below a negation: Horn clauses cannot say that")
    key, atoms, agenda = _key(core, context), symbols.derived.setdefault(name, {}), symbols.agenda

    def term(env: Env) -> Argument:
        place = key(env)
        if place is None:
            return symbols.unknown(BOOL)
        spelled = atoms.get(place)
        if spelled is None:
            spelled = atoms[place] = atom(name, place)
            agenda.append((name, place, spelled))
        return spelled

    return Truth(term)


def _value(declaration: FunctionDeclaration, table: object, key: KeyOf, context: Context) -> Meaning:
    if not isinstance(table, ValueTable):
        raise InternalError(f"{declaration.name} has no table of values")
    name, sort, find, symbols = declaration.name, declaration.result, table.rows.get, context.work.symbols
    group = symbols.group(name)

    def term(env: Env) -> Argument:
        place = key(env)
        if place is None:
            return symbols.unknown(sort)
        found = find(place)
        if type(found) is int:
            spelled = atom(name, place)
            group[spelled] = found
            return spelled
        return symbols.known(name, atom(name, place), found, sort)

    def value(env: Env) -> Element | None:
        place = key(env)
        found = None if place is None else find(place)
        return found if type(found) is int or not isinstance(found, (Unknown, tuple)) else None

    return Truth(term) if sort == BOOL else Scalar(value, term)


def _list(declaration: FunctionDeclaration, table: object, key: KeyOf, context: Context) -> Meaning:
    """The length and each element have symbols of their own."""
    if not isinstance(table, ValueTable) or declaration.result.element is None:
        raise InternalError(f"{declaration.name} has no table of lists")
    name, sort, rows, symbols = declaration.name, declaration.result.element, table.rows, context.work.symbols

    def row(env: Env) -> tuple[str, tuple[Value, ...] | None]:
        symbols.resolved[name] = None
        place = key(env)
        if place is None:
            return symbols.unknown(INT), None
        found = rows.get(place)
        return atom(name, place), found if isinstance(found, tuple) else None

    def at(env: Env, position: int) -> Item:
        base, found = row(env)
        value = found[position] if found is not None and 0 <= position < len(found) else None
        term = symbols.known(name, f"{base}@{position}", value, sort)
        return Item(value if isinstance(value, (int, str)) else None, term)

    def items(env: Env) -> tuple[Item, ...] | None:
        found = row(env)[1]
        return None if found is None else tuple(at(env, position) for position in range(len(found)))

    def length(env: Env) -> Argument:
        base, found = row(env)
        return symbols.known(name, f"{base}@len", None if found is None else len(found), INT)

    return Listing(items, length, at)


def _set(declaration: FunctionDeclaration, table: SetTable, key: KeyOf, context: Context) -> Meaning:
    """A row has one symbol; membership is known under it. In a clause nothing needs one: the goal assumes the table."""
    name, rows, symbols = declaration.name, table.rows, context.work.symbols
    complete = symbols.assume(name)
    known = symbols.group(name)
    spelled: dict[Key, str] = {}

    find = rows.get

    def members(env: Env) -> Iterable[Element] | None:
        place = key(env)
        return None if place is None else find(place, ())

    def has(env: Env, x: Element) -> bool:
        place = key(env)
        return place is not None and x in _row(table, place)

    def symbol_of(place: Key) -> str:
        found = spelled.get(place)
        if found is None:
            listed = rows.get(place)
            found = spelled[place] = atom(name, place) if listed else complete
            if listed:
                known[found] = listed
        return found

    def row(env: Env) -> Argument:
        place = key(env)
        return symbols.unknown(BOOL) if place is None else symbol_of(place)

    def contains(env: Env, x: Element, polarity: int) -> Argument:
        place = key(env)
        if place is None:
            return symbols.unknown(BOOL)
        belongs = TRUE if x in _row(table, place) else FALSE
        if polarity and (belongs is TRUE) is (polarity < 0):
            return belongs
        return under(symbol_of(place), belongs, polarity, symbols)

    def contains_in_clause(env: Env, x: Element, _polarity: int) -> Argument:
        place = key(env)
        if place is None:
            return symbols.unknown(BOOL)
        return TRUE if x in _row(table, place) else FALSE

    if context.work.clause:
        symbols.tables[name] = complete
        return Family(members, None, None, has, contains_in_clause)
    return Family(members, row, complete, has, contains)


LONG = 8
"""Rows longer than this are looked up in a hashed set."""


def _row(table: SetTable, key: Key) -> Collection[Element]:
    row = table.rows.get(key, ())
    return row if len(row) <= LONG else table.sets[key]


@rule("size")
def _size(core: Core, context: Context) -> Meaning:
    """The length of a list; the number of members of a set, counted by the formulas that they are members."""
    (argument,) = core.parts
    listing, symbols = meaning(argument, context.inner()), context.work.symbols
    if isinstance(listing, Listing):
        items_of = listing.items

        def value(env: Env) -> Element | None:
            items = items_of(env)
            return None if items is None else len(items)

        return Scalar(value, listing.length)
    members = family(argument, context)
    condition = members.condition

    def number(env: Env) -> Element | None:
        known = members.members(env)
        return None if known is None or condition else len(list(known))

    def count(env: Env) -> Argument:
        known = members.members(env)
        if known is None:
            return symbols.unknown(INT)
        if condition:
            return Term("+", (0, 0, *(Term("ite", (condition(env, x), 1, 0)) for x in known)))
        size = len(list(known))
        return Term("ite", (members.row(env), size, symbols.irrelevant(INT))) if members.row else size

    return Scalar(number, count)
