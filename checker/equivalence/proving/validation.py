"""The laws of `axioms`, shown anew: by the solver for each element type, or by the machine for all elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sonnx.semantics.model.elements import dtype_of
from sonnx.semantics.operators.compiled.elements.ieee import IEEE

from ...smt.solver import Session
from . import axioms, scalars

SMALL = ("float16", "bfloat16")
"""The types of which the machine tries all elements."""


@dataclass(frozen=True, slots=True)
class Validated:
    """A law for an element type. answer: unsat where no two sides differ; sat, unknown."""

    law: str
    kind: str
    answer: str


def by_solver(kinds: tuple[str, ...] = axioms.NUMBERS, timeout: float = scalars.TIMEOUT) -> Iterator[Validated]:
    """The laws that the solver shows, for these types."""
    for law in axioms.LAWS:
        for kind in law.kinds if law.sides is not None else ():
            if kind in kinds and law.sides is not None:
                yield Validated(law.name, kind, scalars.differ(*law.sides(kind), timeout))
    for name, (_, sides) in axioms.LISTED.items():
        for kind in kinds if sides is not None else ():
            if sides is not None:
                yield Validated(name, kind, scalars.differ(*sides(kind), timeout))


def signs(kind: str, timeout: float = scalars.TIMEOUT) -> str:
    """Whether `0 < 1 / x` and what the solver is asked in its place can differ: unsat, sat or unknown."""
    size = "(_ FloatingPoint {} {})".format(*scalars.FORMATS[kind])
    zero, one = (scalars.numeral(kind, written) for written in ("0", "1"))
    asked = f"(= (fp.lt {zero} (fp.div RNE {one} x)) {scalars.positive('x')})"
    return Session().check(f"(set-logic ALL)(declare-const x {size})(assert (not {asked}))", timeout).status


def squares(kind: str) -> bool:
    """power(x, 2) is x * x for every element of a type of 16 bits, on the machine."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype_of(kind))
    with np.errstate(all="ignore"):
        power = IEEE.power(dtype_of(kind), dtype_of(kind))(x, np.asarray(2).astype(dtype_of(kind)))
        product = IEEE.operation("mul", dtype_of(kind))(x, x)
    nan = np.isnan(power) & np.isnan(product)
    return bool(np.all(nan | (power.view(np.uint16) == product.view(np.uint16))))


FIELD = (
    "(= (* x (+ y z)) (+ (* x y) (* x z)))",
    "(= (* x (* y z)) (* (* x y) z))",
    "(= (* x y) (* y x))",
    "(= (+ x (+ y z)) (+ (+ x y) z))",
    "(= (- x y) (+ x (* (- 1.0) y)))",
    "(=> (not (= y 0.0)) (= (/ x y) (* x (/ 1.0 y))))",
    "(=> (not (= y 0.0)) (= (* (/ 1.0 y) y) 1.0))",
    "(=> (and (not (= y 0.0)) (= (* x y) (* z y))) (= x z))",
    "(=> (and (not (= y 0.0)) (not (= z 0.0))) (not (= (* y z) 0.0)))",
    "(=> (and (>= x 0.0) (>= y 0.0) (= (* x x) z) (= (* y y) z)) (= x y))",
    "(=> (and (= (* y y) z) (not (= z 0.0))) (= (* (/ 1.0 y) (/ 1.0 y)) (/ 1.0 z)))",
)
"""What normal forms over the reals take: sums and products, inverses of what is not 0, the one root that is not
negative.
"""


def field(timeout: float = scalars.TIMEOUT) -> Iterator[Validated]:
    """The laws of real numbers, by the solver's."""
    for law in FIELD:
        yield Validated(law, "real", over_reals(law, timeout))


def over_reals(law: str, timeout: float = scalars.TIMEOUT) -> str:
    """Whether a formula about x, y and z can be false: unsat, sat or unknown."""
    symbols = "".join(f"(declare-const {name} Real)" for name in "xyz")
    return Session().check(f"(set-logic ALL){symbols}(assert (not {law}))", timeout).status
