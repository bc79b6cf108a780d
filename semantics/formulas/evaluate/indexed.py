"""Which quantifiers can run through the index of a relation instead of their whole domain. Syntax only.

`exists n in nodes(g): t in ins(n) and ...` needs only those n whose `ins` hold t, and so does
`forall n in nodes(g): t in ins(n) implies ...`: for every other member the instance is false (true, for `forall`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from sonnx.spec.elaborate.core import TRUE, Binding, Core


class Index(NamedTuple):
    """The members x with `element in relation(x)`: the inverse of the fact `relation` at `element`."""

    relation: str
    element: Core


def index(quantifier: str, variable: Binding, body: Core, scope: Container[Binding | None]) -> Index | None:
    """An index that gives every member of the domain of `variable` which matters to `quantifier`, None without one.

    scope: the variables bound outside of this quantifier. The element is an expression over those.
    """
    while body.head == quantifier != "unique":
        (body,) = body.parts
    if quantifier == "forall":
        body = body.parts[0] if body.head == "implies" else TRUE
    for conjunct in _conjuncts(body):
        match conjunct:
            case Core(head="compare", name="in", parts=(element, Core(head="fact", parts=(argument,)) as row)):
                of_sets = row.sort is not None and row.sort.name == "set"
                outside = all(it.variable in scope for it in element.nodes() if it.head == "variable")
                if of_sets and argument.variable is variable and outside:
                    return Index(row.name, element)
    return None


def _conjuncts(core: Core) -> Iterator[Core]:
    if core.head == "and":
        for part in core.parts:
            yield from _conjuncts(part)
    else:
        yield core
