"""The facts of part 1 of the specification, read off a model: one table for each fact, made when it is asked for."""

from __future__ import annotations

from ..facts import Facts
from ..values import Tables
from . import graph, model, nodes, operators, stores, types, typing


def tables(facts: Facts) -> Tables:
    """The facts of a model."""
    known = types.Types(facts)
    makers = {
        **graph.makers(facts),
        **model.makers(facts),
        **nodes.makers(facts),
        **operators.makers(facts),
        **stores.makers(facts),
        **types.makers(facts, known),
        **typing.makers(facts, known),
    }
    return Tables(makers)
