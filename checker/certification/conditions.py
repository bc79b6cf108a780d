"""Conditions over sizes and data in words, and the sizes at which conditions hold as far as that has a short answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from sonnx.semantics.formulas.terms import TRUE, Argument, Term, weight
from sonnx.semantics.model.path import quote
from sonnx.semantics.operators.symbolic.numbers import at_most, both, equal, floor_mod, substitute_term
from sonnx.semantics.operators.symbolic.statements import evaluate_term

from ..smt.smtlib import OPERATORS, names
from .report import Json

Labels = Mapping[str, str]
Proves = Callable[[Term], bool]
"""The facts entail a formula."""
SAMPLES = 128
"""Sizes are tried from 1 up to this to find a pattern, which is then proved."""
EXPANDED = 100
"""A condition of more operations than this keeps the symbols that stand for others."""
LONGEST = 400
"""The characters of a condition that are shown."""


def expanded(term: Term, defined: Mapping[str, Term]) -> Term:
    """The term with what stands behind the symbols that are defined, as far as that stays short."""
    for _ in defined:
        own = sorted(names(term) & defined.keys())
        if not own:
            break
        longer = term
        for name in own:
            longer = _term(substitute_term(longer, Term(name), defined[name]))
        if weight(longer) > EXPANDED:
            break
        term = longer
    return term


def _term(value: int | Term) -> Term:
    return value if isinstance(value, Term) else TRUE


def determined(sizes: Sequence[str], defined: Mapping[str, Term]) -> frozenset[str]:
    """The symbols that the symbolic sizes determine."""
    known = set(sizes)
    grown = True
    while grown:
        more = {name for name, value in defined.items() if name not in known and names(value) <= known}
        known |= more
        grown = bool(more)
    return frozenset(known)


# ---- Words ------------------------------------------------------------------------------------


def words(term: Term, labels: Labels) -> str:
    """A condition for people: sizes by the names that the model gives them, elements as `indices[i, j]`."""
    text = _infix(term, labels, 0)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


LEVELS = {"iff": 1, "=>": 1, "or": 2, "and": 3, "not": 4, "=": 5, "<=": 5, "r=": 5, "r<": 5, "r<=": 5, "+": 6, "r+": 6,
          "r-": 6, "*": 7, "r*": 7, "r/": 7, "div": 7, "mod": 7}  # fmt: skip
SIGNS = {"r=": "=", "r<": "<", "r<=": "<=", "r+": "+", "r-": "-", "r*": "*", "r/": "/", "=>": "implies"}


def _infix(term: Argument, labels: Labels, level: int) -> str:
    if not isinstance(term, Term):
        return _name(term, labels) if isinstance(term, str) else str(term)
    match term:
        case Term("true" | "false" as op, ()):
            return op
        case Term(op, ()):
            return _name(op, labels)
        case Term("not", (inner,)):
            own = _negation(inner, labels)
        case Term("forall" | "exists" as op, args):
            own = _quantified(op, [str(name) for name in args[:-1]], args[-1], labels)
        case Term("ite" | "rite", (condition, left, right)):
            then, other = _infix(left, labels, 1), _infix(right, labels, 1)
            own = f"if {_infix(condition, labels, 0)} then {then} else {other}"
        case Term("rational", (above, below)):
            return str(above) if below == 1 else f"{above}/{below}"
        case Term("to_real", (inner,)):
            return _infix(inner, labels, level)
        case Term("to_int", (inner,)):
            return f"floor({_infix(inner, labels, 0)})"
        case Term("<=", (left, right)):
            own = _at_most(left, right, labels)
        case Term("+", args):
            own = _sum(args, labels)
        case Term(op, args) if op in LEVELS:
            own = f" {SIGNS.get(op, op)} ".join(_infix(arg, labels, LEVELS[op] + 1) for arg in args)
        case Term(op, args):
            return f"{_name(op, labels)}[{', '.join(_infix(arg, labels, 0) for arg in args)}]"
    inner_level = LEVELS.get(term.op, 0)
    return f"({own})" if inner_level < level else own


def _sum(args: tuple[Argument, ...], labels: Labels) -> str:
    """A sum, negative parts with a minus."""
    parts: list[str] = []
    for part in args:
        match part:
            case int() if part < 0:
                parts += ["-", str(-part)]
            case Term("*", (int() as factor, *rest)) if factor < 0:
                product = Term("*", (-factor, *rest) if factor != -1 else tuple(rest))
                parts += ["-", _infix(product if len(product.args) > 1 else rest[0], labels, 7)]
            case _:
                parts += ["+", _infix(part, labels, 7)]
    return " ".join(parts[1:] if parts[0] == "+" else parts)


def _at_most(left: Argument, right: Argument, labels: Labels) -> str:
    """a <= b, with the constants on one side."""
    if isinstance(left, Term) and left.op == "+" and isinstance(left.args[-1], int) and not isinstance(right, int):
        rest = left.args[:-1]
        base = rest[0] if len(rest) == 1 else Term("+", rest)
        if left.args[-1] == 1:
            return f"{_infix(base, labels, 6)} < {_infix(right, labels, 6)}"
    if isinstance(left, int) and isinstance(right, Term):
        if right.op == "+" and isinstance(right.args[-1], int):
            rest = right.args[:-1]
            base = rest[0] if len(rest) == 1 else Term("+", rest)
            return f"{_infix(base, labels, 6)} >= {left - right.args[-1]}"
        return f"{_infix(right, labels, 6)} >= {left}"
    return f"{_infix(left, labels, 6)} <= {_infix(right, labels, 6)}"


def _negation(inner: Argument, labels: Labels) -> str:
    if isinstance(inner, Term) and inner.op in ("=", "r="):
        return f"{_infix(inner.args[0], labels, 6)} != {_infix(inner.args[1], labels, 6)}"
    return f"not {_infix(inner, labels, 4)}"


def _quantified(op: str, variables: list[str], body: Argument, labels: Labels) -> str:
    """`for every i < n, j < m: ...`, with the ranges that the body states."""
    inner = "or" if op == "forall" else "and"
    parts = list(body.args) if isinstance(body, Term) and body.op == inner else [body]
    ranges = []
    for variable in variables:
        index = Term(variable)
        bound = ""
        for part in list(parts):
            match part:
                case Term("<=", (Term("+", (same, 1)), 0)) if op == "forall" and same == index:
                    parts.remove(part)
                case Term("<=", (size, same)) if op == "forall" and same == index and not bound:
                    parts.remove(part)
                    bound = f" < {_infix(size, labels, 6)}"
                case Term("<=", (0, same)) if op == "exists" and same == index:
                    parts.remove(part)
                case Term("<=", (Term("+", (same, 1)), size)) if op == "exists" and same == index and not bound:
                    parts.remove(part)
                    bound = f" < {_infix(size, labels, 6)}"
                case _:
                    pass
        ranges.append(_name(variable, labels) + bound)
    rest = parts[0] if len(parts) == 1 else Term(inner, tuple(parts))
    return f"for {'every' if op == 'forall' else 'some'} {', '.join(ranges)}: {_infix(rest, labels, 1)}"


def _name(name: str, labels: Labels) -> str:
    """The words for a symbol: sizes and tensors by their labels, index variables without their numbers."""
    if name in labels:
        return _label(labels[name])
    stem, _, sort = name.rpartition(".")
    if sort in ("Int", "Real", "Bool") and stem in labels:
        return _label(labels[stem])
    own = re.sub(r"^n\d+\.", "", name)
    match = re.match(r"(t\d+)\.size\.(\d+)$", name)
    if match and match[1] in labels:
        return f"shape({_label(labels[match[1]])})[{match[2]}]"
    match = re.match(r"(t\d+)\.length$", name)
    if match and match[1] in labels:
        return f"length({_label(labels[match[1]])})"
    match = re.match(r"(t\d+)\.entry\.(\d+)$", name)
    if match and match[1] in labels:
        return f"{_label(labels[match[1]])}[{match[2]}]"
    return re.sub(r"(\.[0-9a-f]+)?!(\d+)$", lambda m: m[2] if m[2] != "0" else "", own)


def _label(name: str) -> str:
    """A name of the model, in quotes where it could be read as something else."""
    return name if re.fullmatch(r"[A-Za-z_][\w.:/]*(\[\d+\])?", name) else quote(name)


# ---- For programs -----------------------------------------------------------------------------


def as_json(term: Argument, labels: Labels) -> Json:
    """A term as lists, the operator first. A size of an input is its name, another size `["size", tensor, axis]`, a
    number of entries `["length", sequence]`, an element `["element", tensor, index...]`, one that sizes make
    `["entry", tensor, place]` (row-major), a bound variable `["index", name]`; any other symbol is
    `["symbol", name, argument...]`.
    """
    if not isinstance(term, Term):
        return ["index", term] if isinstance(term, str) else term
    op, args = term
    if op in OPERATORS:
        if op in ("forall", "exists"):
            return [op, [str(name) for name in args[:-1]], as_json(args[-1], labels)]
        return op == "true" if op in ("true", "false") else [op, *(as_json(part, labels) for part in args)]
    inner = [as_json(part, labels) for part in args]
    if op.startswith("dim.") and op in labels:
        return labels[op]
    part = re.fullmatch(r"(t\d+)\.(size|entry)\.(\d+)", op)
    if part is not None and part[1] in labels:
        return [part[2], labels[part[1]], int(part[3])]
    stem, _, sort = op.rpartition(".")
    if sort == "length" and stem in labels:
        return ["length", labels[stem]]
    if sort in ("Int", "Real", "Bool") and stem in labels:
        return ["element", labels[stem], *inner]
    return ["symbol", op, *inner]


# ---- For which sizes --------------------------------------------------------------------------


def simplified(conditions: Sequence[Term], entails: Callable[[Sequence[Term], Term], bool]) -> tuple[Term, ...]:
    """The conditions without those that follow from the others. entails: whether some of them imply one."""
    kept = list(dict.fromkeys(conditions))
    for condition in list(kept):
        rest = [other for other in kept if other != condition]
        if rest and entails(rest, condition):
            kept = rest
    return tuple(kept)


def solved(condition: Term, symbol: str, proves: Proves) -> Term:
    """A condition about one size in its plainest form: a number, a least or a greatest number, or as it stands."""
    truths = [bool(evaluate_term(condition, {symbol: n})) for n in range(1, SAMPLES + 1)] if _plain(condition) else []
    size = Term(symbol)
    if truths and any(truths):
        first = truths.index(True) + 1
        candidates = [equal(size, first)]
        if sum(truths) == 1:
            pass
        elif all(truths[first - 1 :]):
            candidates = [at_most(first, size)]
        elif first == 1 and not any(truths[truths.index(False) :]):
            candidates = [at_most(size, truths.index(False))]
        elif truths == [n % first == 0 for n in range(1, SAMPLES + 1)]:
            candidates = [equal(floor_mod(size, first), 0)]
        elif sum(truths) > 1:
            last = max(n for n, true in zip(count(1), truths, strict=False) if true)
            candidates = [both(at_most(first, size), at_most(size, last))]
        for candidate in candidates:
            if proves(Term("iff", (condition, candidate))):
                return candidate
    return condition


def _plain(term: Argument) -> bool:
    """The term can be computed from the values of its symbols."""
    if not isinstance(term, Term):
        return True
    return term.op not in ("forall", "exists", "flat", "unflat") and all(map(_plain, term.args))
