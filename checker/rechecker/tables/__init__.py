"""The facts of part 1 of the specification, read off a model: one table for each fact, made when it is asked for.

A file has the facts of one subject and gives their makers by name; `tables` puts them together. A table must not know
rules or certificates: it says what is so in a model.
"""

from __future__ import annotations

from ..facts import Facts
from ..text import Text
from ..values import Tables
from . import computed, functions, graph, model, nodes, operators, stores, types, typing


def tables(facts: Facts, text: Text) -> Tables:
    """The facts of a model. text: of the specification, whose operators say what types they give."""
    known = types.Types(facts)
    makers = {
        **computed.makers(facts, text),
        **functions.makers(facts),
        **graph.makers(facts),
        **model.makers(facts),
        **nodes.makers(facts),
        **operators.makers(facts),
        **stores.makers(facts),
        **types.makers(facts, known),
        **typing.makers(facts, known),
    }
    return Tables(makers)
