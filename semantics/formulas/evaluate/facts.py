"""The direct interpretation, applications: facts are looked up, definitions expanded, inductive atoms asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from sonnx.spec.language.syntax import BOOL, INT, TEXT, Expr, FunctionDeclaration

from ...errors import InternalError
from ...facts.structure import Key, SetTable, Structure, Unknown, Value, ValueTable
from .expressions import Code, Compiled, Context, Env, compiled, rule


class KeyCode(NamedTuple):
    """How to make the key of a table. sure: no part of it is ever unknown. slot: the only part is a variable."""

    run: Callable[[Env], Key | Unknown]
    sure: bool
    slot: int | None = None


def key_of(arguments: Sequence[object], context: Context) -> KeyCode:
    """The key of a table for these arguments."""
    parts = [compiled(argument, context) for argument in arguments]
    if not parts:
        return KeyCode(lambda _env: (), sure=True)
    if len(parts) == 1:
        return KeyCode(parts[0].run, parts[0].sure, parts[0].slot)

    def code(env: Env) -> Key | Unknown:
        values = tuple(part.run(env) for part in parts)
        return next((value for value in values if isinstance(value, Unknown)), values)  # type: ignore[return-value]

    return KeyCode(code, all(part.sure for part in parts))


@rule("call")
def _call(expr: Expr, context: Context) -> Compiled:
    name, *arguments = expr.args
    if name == "len":
        run = compiled(arguments[0], context).run

        def length(env: Env) -> Value:
            value = run(env)
            return len(value) if isinstance(value, tuple) else value

        return Compiled(length, INT)
    declaration = context.functions.get(str(name))
    if declaration is None or declaration.kind == "fun":
        raise InternalError(f"the direct evaluator does not know the function {name}")
    if declaration.kind == "define":
        return _expanded(declaration, arguments, context)
    key = key_of(arguments, context)
    if declaration.kind == "inductive":
        return Compiled(_inductive(key, context.atoms(declaration.name)), BOOL)
    table = context.structure.table(declaration.name)
    if isinstance(table, SetTable):
        return Compiled(_row(key, table), declaration.result, key.sure)
    return Compiled(_value(declaration, key, table, context.structure), declaration.result)


def _inductive(key: KeyCode, truth: Callable[[Key], Value]) -> Code:
    run = key.run

    def code(env: Env) -> Value:
        place = run(env)
        return place if isinstance(place, Unknown) else truth(place)

    return code


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


def _expanded(declaration: FunctionDeclaration, arguments: Sequence[object], context: Context) -> Compiled:
    """The body of a definition, its parameters bound to the arguments; a variable as argument is not copied."""
    if declaration.name in context.expanding:
        raise InternalError(f"the definition of {declaration.name} is recursive")
    inner = replace(context, scope={}, expanding=(*context.expanding, declaration.name))
    copies: list[tuple[int, Code]] = []
    for parameter, argument in zip(declaration.parameters, arguments, strict=True):
        if isinstance(argument, Expr) and argument.head == "var":
            variable = context.scope[str(argument.args[0])]
            inner = replace(inner, scope={**inner.scope, parameter.name: variable})
        else:
            given = compiled(argument, context)
            slot, inner = inner.bind(parameter.name, parameter.sort, sure=given.sure)
            copies.append((slot, given.run))
    body = compiled(declaration.body, inner).run
    if not copies:
        return Compiled(body, declaration.result)

    def code(env: Env) -> Value:
        for slot, run in copies:
            env[slot] = run(env)
        return body(env)

    return Compiled(code, declaration.result)
