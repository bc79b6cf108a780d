"""The direct interpretation, applications: facts are looked up, definitions expanded, inductive atoms asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sonnx.spec.elaborate.core import Core
from sonnx.spec.language.syntax import BOOL, INT, TEXT, FunctionDeclaration

from ...errors import InternalError
from ...facts.structure import Key, SetTable, Structure, Unknown, Value, ValueTable
from .expressions import Code, Compiled, Context, Env, bind, compiled, rule


class KeyCode(NamedTuple):
    """How to make the key of a table. sure: no part of it is ever unknown. slot: the only part is a variable."""

    run: Callable[[Env], Key | Unknown]
    sure: bool
    slot: int | None = None


def key_of(core: Core, context: Context) -> KeyCode:
    """The key of a table for the arguments of an application."""
    parts = [compiled(argument, context) for argument in core.parts]
    if not parts:
        return KeyCode(lambda _env: (), sure=True)
    if len(parts) == 1:
        return KeyCode(parts[0].run, parts[0].sure, parts[0].slot)

    def code(env: Env) -> Key | Unknown:
        values = tuple(part.run(env) for part in parts)
        return next((value for value in values if isinstance(value, Unknown)), values)  # type: ignore[return-value]

    return KeyCode(code, all(part.sure for part in parts))


@rule("size")
def _size(core: Core, context: Context) -> Compiled:
    run = compiled(core.parts[0], context).run

    def length(env: Env) -> Value:
        value = run(env)
        return len(value) if isinstance(value, tuple) else value

    return Compiled(length)


@rule("fact")
def _fact(core: Core, context: Context) -> Compiled:
    structure, key = context.work.structure, key_of(core, context)
    table = structure.table(core.name)
    if isinstance(table, SetTable):
        return Compiled(_row(key, table), key.sure)
    return Compiled(_value(context.cores.functions[core.name], key, table, structure))


@rule("inductive")
def _inductive(core: Core, context: Context) -> Compiled:
    run, truth = key_of(core, context).run, context.work.atoms(core.name)

    def code(env: Env) -> Value:
        place = run(env)
        return place if isinstance(place, Unknown) else truth(place)

    return Compiled(code)


def _row(key: KeyCode, table: SetTable) -> Code:
    find, run, slot = table.rows.get, key.run, key.slot
    if key.sure and slot is not None:
        return lambda env: find(env[slot], ())  # type: ignore[arg-type]

    def row(env: Env) -> Value:
        place = run(env)
        return place if isinstance(place, Unknown) else find(place, ())

    return row


def _value(declaration: FunctionDeclaration, key: KeyCode, table: object, structure: Structure) -> Code:
    if not isinstance(table, ValueTable):
        raise InternalError(f"the table of {declaration.name} is a {type(table).__name__}")
    find, run = table.rows.get, key.run

    def value(env: Env) -> Value:
        place = run(env)
        if isinstance(place, Unknown):
            return place
        found = find(place)
        return _undefined(declaration, place, structure) if found is None else found

    return value


def _undefined(declaration: FunctionDeclaration, key: Key, structure: Structure) -> Unknown:
    parts = key if isinstance(key, tuple) else (key,)
    shown = [
        repr(part) if parameter.sort in (BOOL, INT, TEXT) else structure.place(parameter.sort, part)
        for part, parameter in zip(parts, declaration.parameters, strict=True)
    ]
    return Unknown(f"{declaration.name}({', '.join(shown)}) is undefined")


@rule("define")
def _expanded(core: Core, context: Context) -> Compiled:
    """The body of a definition, its parameters bound to the arguments; a variable as argument is not copied."""
    definition = context.cores.definition(core.name)
    inner = context.inside(core.name, {})
    copies: list[tuple[int, Code]] = []
    for parameter, argument in zip(definition.parameters, core.parts, strict=True):
        given = compiled(argument, context)
        if given.slot is not None:
            inner = inner.bind(parameter, given)
        else:
            slot, inner = bind(parameter, inner, sure=given.sure)
            copies.append((slot, given.run))
    body = compiled(definition.body, inner).run
    if not copies:
        return Compiled(body)

    def code(env: Env) -> Value:
        for slot, run in copies:
            env[slot] = run(env)
        return body(env)

    return Compiled(code)
