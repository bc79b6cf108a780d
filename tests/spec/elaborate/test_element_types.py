"""Element types of a text, for each choice of types that its variables may stand for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sampling import CAMPAIGN
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.elaborate.declarations import definitions
from sonnx.spec.elaborate.element_types import check_element_types
from sonnx.spec.elaborate.schema import signatures
from sonnx.spec.elaborate.scope import Ledger
from sonnx.spec.elaborate.sorts import BUILT_IN
from sonnx.spec.language.syntax import TypeVariable
from sonnx.spec.library import specification


@pytest.mark.parametrize("count", [pytest.param(40, id="sample"), pytest.param(1000, id="all", marks=CAMPAIGN)])
def test_no_text_of_an_operator_mixes_element_types(count: int) -> None:
    own = specification()
    names = sorted(own.operators)
    ledger = Ledger(own.functions, (*own.sorts, *BUILT_IN))
    for name in random.Random(0).sample(names, min(count, len(names))):
        check_element_types(list(_typed(name)), definitions({}, ledger), ledger)
    assert ledger.errors == []


def _typed(name: str) -> Iterator[CoreOperator]:
    """The meanings of an operator with the types that ONNX's schema admits; of sequences nothing is said."""
    by_version = {signature.version: signature for signature in signatures().get(name, ())}
    for version in sorted({operator.first for operator in specification().operators[name]}):
        core = specification().meanings.at(name, version)
        if core is None:
            continue
        ports = (*by_version[version].inputs, *by_version[version].outputs) if version in by_version else ()
        types = {it.type: tuple(sorted(it.allowed)) for it in ports if not any("(" in kind for kind in it.allowed)}
        stated = tuple(TypeVariable(kind, allowed) for kind, allowed in types.items() if allowed != (kind,))
        yield replace(core, types=core.types or stated)
