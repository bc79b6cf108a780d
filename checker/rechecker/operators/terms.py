"""Conditions as a certificate carries them: JSON lists, the operator first, sizes by their names in the model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from .formulas import (
    Formula,
    Int,
    Symbol,
    add,
    at_least,
    both,
    chosen,
    either,
    equal,
    floor_div,
    floor_mod,
    multiply,
    opposite,
    poly,
)
from .values import Open

NONE: Int = 0
ONE: Int = 1


def formula(term: object, sizes: Mapping[str, Symbol]) -> Formula:
    """A condition. Raises Open for what is none over these sizes."""
    match term:
        case bool():
            return term
        case ["=", left, right]:
            return equal(_number(left, sizes), _number(right, sizes))
        case ["<=", left, right]:
            return at_least(_number(right, sizes), _number(left, sizes))
        case ["and", *parts]:
            return both(*(formula(part, sizes) for part in parts))
        case ["or", *parts]:
            return either(*(formula(part, sizes) for part in parts))
        case ["not", part]:
            return opposite(formula(part, sizes))
        case ["=>", left, right]:
            return either(opposite(formula(left, sizes)), formula(right, sizes))
        case ["iff", left, right]:
            a, b = formula(left, sizes), formula(right, sizes)
            return either(both(a, b), both(opposite(a), opposite(b)))
        case _:
            raise Open(f"{str(term)[:100]} is no condition over sizes")


def _number(term: object, sizes: Mapping[str, Symbol]) -> Int:
    match term:
        case bool():
            raise Open("a truth value stands for a number")
        case int():
            return term
        case str() if term in sizes:
            return poly(sizes[term])
        case ["+", *parts]:
            return reduce(add, (_number(part, sizes) for part in parts), NONE)
        case ["*", *parts]:
            return reduce(multiply, (_number(part, sizes) for part in parts), ONE)
        case ["div", left, int() as by] if by > 0:
            return floor_div(_number(left, sizes), by)
        case ["mod", left, int() as by] if by > 0:
            return floor_mod(_number(left, sizes), by)
        case ["ite", condition, left, right]:
            return chosen(formula(condition, sizes), _number(left, sizes), _number(right, sizes))
        case _:
            raise Open(f"{str(term)[:100]} is no number over sizes")
