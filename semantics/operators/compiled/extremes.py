"""What a text makes of the position of an extreme, such as that of the greatest element of a window.

Where each element of a result asks for one position, all that may be it can be tried one by one; and where the result
is the element at that position itself, it is at least as far out as each element of which the extreme is sought.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from sonnx.spec.elaborate.core import Binding, Core, CoreOperator, CoreStatement

from ...model.schemas import reached

NAMES: Final = ("argmax", "argmin")
"""The folds that give a position."""
_Env = Mapping[Binding, Core]


@cache
def sought(operator: CoreOperator) -> CoreStatement | None:
    """The one view in which the text asks for positions of extremes, of which each element of a result reads one entry
    at most, at its own index: how the other ones are is no matter to it. None where that is not so."""
    folds = [node for node in reached(operator.statements) if node.head == "fold" and node.name in NAMES]
    views = [it for it in operator.statements if it.kind == "view" and it.body in folds]
    if len(folds) != 1 or len(views) != 1:
        return None
    resting = {views[0].binds[0]}
    for it in operator.statements:
        mentioned = [node for node in it.nodes() if node.variable in resting]
        if it is views[0] or not mentioned:
            continue
        asked = [index for name, index in map(_entry, it.nodes()) if name in resting]
        if it.kind not in ("function", "view", "equation") or any(index != _own(it) for index in asked):
            return None
        if len(asked) < len(mentioned):
            return None
        resting.update(it.binds)
    return views[0]


def _own(statement: CoreStatement) -> tuple[Binding, ...]:
    """The variables of an index at which a statement gives an element, or those that a function has."""
    if statement.kind == "function":
        return statement.parameters
    return tuple(variable for bound in statement.bound for variable in bound.variables)


def _entry(node: Core) -> tuple[Binding | None, tuple[Binding | None, ...]]:
    """The name that is read at an index, or applied, and the variables there."""
    match node.head:
        case "index":
            return node.parts[0].variable, tuple(part.variable for part in node.parts[1:])
        case "local":
            return node.variable, tuple(part.variable for part in node.parts)
        case _:
            return None, ()


@cache
def chosen(operator: CoreOperator) -> frozenset[str]:
    """The outputs each element of which is the one at the position that is sought, among those that are compared."""
    view = sought(operator)
    if view is None or len(view.body.bound) != 1 or len(view.body.bound[0].variables) != 1:
        return frozenset()
    functions = {it.binds[0]: it for it in operator.statements if it.kind == "function"}
    (step,), steps = view.body.bound[0].variables, view.body.bound[0].domain
    found = set()
    for it in operator.statements:
        if it.kind != "equation" or len(_own(it)) != len(_own(view)):
            continue
        renamed = dict(zip(_own(view), _own(it), strict=True))

        def same(one: Core, other: Core, env: _Env, renamed: Mapping[Binding, Binding] = renamed) -> bool:
            """The term of the fold is that of the result, with the step that is sought in the place of any one."""
            if other.variable is not None and other.variable in env:
                return same(one, env[other.variable], {})
            if other.head == "local" and other.variable in functions:
                function = functions[other.variable]
                return same(one, function.body, dict(zip(function.parameters, other.parts, strict=True)))
            if one.variable is step:
                return (
                    (other.head, other.name) == ("fun", "unflatten")
                    and len(other.parts) == 2
                    and other.parts[0].head == "index"
                    and other.parts[0].parts[0].variable is view.binds[0]
                    and other.parts[1].variable is not None
                    and other.parts[1].variable is steps.variable
                )
            variable = None if one.variable is None else renamed.get(one.variable, one.variable)
            return (
                (one.head, one.name if one.variable is None else "", one.value, one.labels)
                == (other.head, other.name if other.variable is None else "", other.value, other.labels)
                and variable is other.variable
                and not one.bound
                and not other.bound
                and len(one.parts) == len(other.parts)
                and all(same(a, b, env) for a, b in zip(one.parts, other.parts, strict=True))
            )

        if same(view.body.parts[0], it.body, {}):
            found.add(it.name)
    return frozenset(found)
