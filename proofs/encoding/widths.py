"""The law Decodes for elements of fixed widths: `decode(encode(v)) = v`, width by width.

For a width, lists of elements are asked that fill whole bytes and those that do not, as far as a byte has parts of
several elements: one element more than fill bytes without a rest, above 16 bits one. Up to 16 bits in all every value
is evaluated; what is longer is asked of z3, and of cvc5 where it is installed, as a question about bit-vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from sonnx.checker.smt.solver import Session
from sonnx.semantics.errors import InternalError
from sonnx.spec.library import Specification

from ..gates import cvc5_prover
from .folding import Bits, Meaning, constant, evaluated

WIDTHS = (2, 4, 6, 8, 16, 32, 64, 128)
"""The widths of ONNX's element types (onnx.proto, TensorProto.DataType)."""
EXHAUSTIVE = 16
"""Up to so many bits every value is tried."""
SECONDS = 60.0
LAW = "Decodes"
"""The law of part 6 that is shown here for elements of fixed widths."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The law for lists of `count` elements of a width. how: evaluated, or by which solvers; "" where it was not shown,
    and why."""

    width: int
    count: int
    how: str
    why: str = ""


def counts(width: int) -> range:
    """The lengths of lists that are asked."""
    return range(8 // math.gcd(8, width) + (2 if width <= EXHAUSTIVE else 1))


def shown(text: Specification) -> Iterator[Shown]:
    """The law for each width and each length of a list."""
    for width in WIDTHS:
        for count in counts(width):
            if width * count <= EXHAUSTIVE:
                why = _tried(text, width, count)
                yield Shown(width, count, "" if why else "every value", why)
            else:
                yield _asked(text, width, count)


def _round_trip(text: Specification, elements: tuple[Meaning, ...], width: int) -> tuple[tuple[Meaning, ...], ...]:
    data = evaluated(text, "encode", elements, width)
    back = evaluated(text, "decode", data, width, len(elements))
    if not isinstance(data, tuple) or not isinstance(back, tuple):
        raise InternalError("encode and decode give lists")
    return data, back


def _tried(text: Specification, width: int, count: int) -> str:
    """Why the law fails for some values; empty where it holds for all."""
    all_of_them = np.arange(1 << (width * count), dtype=np.int64)
    elements = tuple((all_of_them >> (width * k)) & ((1 << width) - 1) for k in range(count))
    data, back = _round_trip(text, elements, width)
    if len(data) != (width * count + 7) // 8:
        return f"{count} elements of {width} bits take {len(data)} bytes"
    if any(np.any((np.asarray(it) < 0) | (np.asarray(it) > 255)) for it in data):
        return "a byte is outside 0 .. 255"
    decoded = [it for it in back if isinstance(it, np.ndarray)]
    if len(decoded) != count or any(not np.array_equal(a, b) for a, b in zip(elements, decoded, strict=True)):
        return "some elements are not decoded to what they were"
    return ""


def question(text: Specification, width: int, count: int) -> str:
    """The question whether the law fails, in QF_BV: unsat means that it holds."""
    names = [f"v{k}" for k in range(count)]
    size = max(width, 8) + 1
    elements = tuple(Bits(name, (1 << width) - 1, size) for name in names)
    data, back = _round_trip(text, elements, width)
    lines = ["(set-logic QF_BV)"]
    lines += [f"(declare-const {name} (_ BitVec {size}))" for name in names]
    lines += [f"(assert (bvult {name} {constant(1 << width, size)}))" for name in names]
    right = [f"(bvult {_term(it, size)} {constant(256, size)})" for it in data]
    right += [f"(= {_term(it, size)} {name})" for it, name in zip(back, names, strict=True)]
    if len(data) != (width * count + 7) // 8 or len(back) != count:
        right.append("false")
    return "\n".join((*lines, f"(assert (not (and true {' '.join(right)})))", ""))


def _term(value: Meaning, size: int) -> str:
    if isinstance(value, Bits):
        return value.term
    if isinstance(value, int):
        return constant(value, size)
    raise InternalError("a bit-vector is expected")


def _asked(text: Specification, width: int, count: int) -> Shown:
    asked = question(text, width, count)
    answer = Session().check(asked, SECONDS)
    if answer.status != "unsat":
        return Shown(width, count, "", f"z3 says {answer.status}")
    other = cvc5_prover.prove(asked)
    if other.status == "absent":
        return Shown(width, count, "z3")
    if other.status != "unsat":
        return Shown(width, count, "", f"cvc5 says {other.status}")
    return Shown(width, count, "z3 and cvc5")


def lines(found: Sequence[Shown]) -> Iterator[str]:
    """The law as it is listed: for each width how it was shown."""
    for width, rows in groupby(found, key=lambda it: it.width):
        of_width = list(rows)
        ways = {how: [it.count for it in of_width if it.how == how] for how in dict.fromkeys(it.how for it in of_width)}
        told = [f"{how} of lists of {_few(counted)}" for how, counted in ways.items() if how]
        told += [f"NOT SHOWN of lists of {it.count}: {it.why}" for it in of_width if not it.how]
        yield f"law {LAW}, elements of {width} bits: {'; '.join(told)}"
    if found:
        yield f"law {LAW}, longer lists, strings, sequences, optionals and maps: assumed, tested"


def _few(counted: Sequence[int]) -> str:
    return str(counted[0]) if len(counted) == 1 else f"{counted[0]} to {counted[-1]}"
