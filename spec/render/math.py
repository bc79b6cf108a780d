"""Notation as plain text, and broken into lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..language.printer import BINARY, IFF, NOT, PRODUCT, SUM
from ..language.syntax import Arm, Expr
from .notation import (
    COLON,
    COMMA,
    CONNECTIVES,
    EMPTY,
    RELATIONS,
    SIGNS,
    Math,
    brackets,
    fold_operator,
    labels,
    listed,
    needs_parentheses,
    notation,
    quantifier,
    row,
    sign,
    word,
)

WIDTH = 76
"""The width in characters beyond which a formula is broken into lines."""

SPACED = {"word": " {} ", "sign": " {} ", "separator": "{} "}


def formula_text(expr: Expr) -> str:
    """The formula on one line of Unicode text."""
    return to_text(notation(expr))


def to_text(math: Math) -> str:
    """The notation on one line of Unicode text."""
    return _flat(math).strip()


def _flat(math: Math) -> str:
    match math.kind:
        case "row":
            out = ""
            for piece in map(_flat, math.items):
                if out and (out[-1] in " ([{⌊¬" and piece.startswith(" ")):
                    piece = piece[1:]
                if piece and piece[0] in ",:;)]}⌋" and out.endswith(" "):
                    out = out[:-1]
                out += piece
            return out
        case "under":
            operator, below = math.items
            return f"{_flat(operator)}({to_text(below)}) "
        case "quotient":
            return " / ".join(to_text(item) for item in math.items[2:])
        case "prefix":
            return math.text + (" " if math.text in "∀∃!" else "")
        case kind:
            return SPACED.get(kind, "{}").format(math.text)


# ---- Lines ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MathLine:
    """One line of a broken formula."""

    indent: int
    math: Math


def broken(expr: Expr, lead: Math = EMPTY, indent: int = 0, width: int = WIDTH) -> tuple[MathLine, ...]:
    """The formula behind `lead`, broken at its outermost connectives where it is wider than `width`."""
    return tuple(_lines(expr, lead, EMPTY, indent, width))


def _lines(expr: Expr, lead: Math, trail: Math, indent: int, width: int, level: int = IFF) -> Iterator[MathLine]:
    whole = row(lead, notation(expr, level), trail)
    if len(to_text(whole)) + 2 * indent <= width or expr.head not in BREAKS:
        yield MathLine(indent, whole)
        return
    if needs_parentheses(expr, level):
        lead, trail = row(lead, Math("mark", "(")), row(Math("mark", ")"), trail)
    yield from BREAKS[expr.head](expr, lead, trail, indent, width)


def _break_chain(expr: Expr, lead: Math, trail: Math, indent: int, width: int) -> Iterator[MathLine]:
    operands = list(expr.children())
    inner = [NOT] * len(operands) if expr.head in ("and", "or") else list(BINARY[expr.head][2:])
    for position, operand in enumerate(operands):
        first, last = position == 0, position == len(operands) - 1
        yield from _lines(
            operand,
            lead if first else sign(CONNECTIVES[expr.head]),
            trail if last else EMPTY,
            indent if first else indent + 1,
            width,
            inner[position],
        )


def _break_quantifier(expr: Expr, lead: Math, trail: Math, indent: int, width: int) -> Iterator[MathLine]:
    yield MathLine(indent, row(lead, quantifier(expr), COLON))
    yield from _lines(expr.part(-1), EMPTY, trail, indent + 1, width)


def _break_operation(expr: Expr, lead: Math, trail: Math, indent: int, width: int) -> Iterator[MathLine]:
    """A chain of additions or of multiplications, one operand on a line."""
    chain, level = [(EMPTY, expr, 0)], BINARY[expr.head][0]
    while chain[0][1].head in SIGNS and BINARY.get(chain[0][1].head, (None,))[0] == level:
        operation = chain[0][1]
        left, right = operation.parts()
        _, _, low, high = BINARY[operation.head]
        chain[:1] = [(EMPTY, left, low), (sign(SIGNS[operation.head]), right, high)]
    for position, (operator, operand, level) in enumerate(chain):
        before, behind = (lead, indent) if position == 0 else (operator, indent + 1)
        yield from _lines(operand, before, trail if position == len(chain) - 1 else EMPTY, behind, width, level)


def _break_compare(expr: Expr, lead: Math, trail: Math, indent: int, width: int) -> Iterator[MathLine]:
    operands = list(expr.children())
    signs = [lead, *(sign(RELATIONS[str(relation)]) for relation in expr.args[1::2])]
    for position, (operand, relation) in enumerate(zip(operands, signs, strict=True)):
        last = position == len(operands) - 1
        yield from _lines(operand, relation, trail if last else EMPTY, indent + min(position, 1), width, SUM)


def _break_fold(expr: Expr, lead: Math, trail: Math, indent: int, width: int) -> Iterator[MathLine]:
    yield MathLine(indent, row(lead, fold_operator(expr)))
    yield from _lines(expr.part(-1), EMPTY, trail, indent + 1, width, PRODUCT)


def _break_brackets(expr: Expr, lead: Math, trail: Math, indent: int, width: int) -> Iterator[MathLine]:
    left, items, right = brackets(expr)
    if not items:
        yield MathLine(indent, row(lead, left, right, trail))
        return
    yield MathLine(indent, row(lead, left))
    filled = EMPTY
    for position, item in enumerate(items):
        behind = row(right, trail) if position == len(items) - 1 else COMMA
        short = row(notation(item) if isinstance(item, Expr) else item, behind)
        longer = row(filled, short)
        if len(to_text(longer)) + 2 * (indent + 1) <= width:
            filled = longer
            continue
        if filled.items:
            yield MathLine(indent + 1, filled)
        filled = EMPTY
        if isinstance(item, Expr) and len(to_text(short)) + 2 * (indent + 1) > width:
            yield from _lines(item, EMPTY, behind, indent + 1, width)
        else:
            filled = short
    if filled.items:
        yield MathLine(indent + 1, filled)


def _break_listed(expr: Expr, lead: Math, trail: Math, indent: int, width: int) -> Iterator[MathLine]:
    body, behind = listed(expr)
    yield from _lines(body, row(lead, Math("mark", "[")), EMPTY, indent, width)
    yield MathLine(indent + 1, row(behind, Math("mark", "]"), trail))


def _break_ite(expr: Expr, lead: Math, trail: Math, indent: int, width: int) -> Iterator[MathLine]:
    condition, then, other = expr.children()
    yield from _lines(condition, row(lead, word("if")), word("then"), indent, width)
    yield from _lines(then, EMPTY, EMPTY, indent + 1, width)
    if other.head == "ite":
        yield from _lines(other, word("else"), trail, indent, width)
    else:
        yield MathLine(indent, word("else"))
        yield from _lines(other, EMPTY, trail, indent + 1, width)


def _break_case(expr: Expr, lead: Math, trail: Math, indent: int, width: int) -> Iterator[MathLine]:
    yield MathLine(indent, row(lead, word("case"), notation(expr.part(0)), word("of")))
    for arm in expr.args:
        if isinstance(arm, Arm):
            yield from _lines(arm.body, row(labels(arm), COLON), EMPTY, indent + 1, width)
    if trail.items:
        yield MathLine(indent, trail)


BREAKS: dict[str, Callable[[Expr, Math, Math, int, int], Iterator[MathLine]]] = {
    **dict.fromkeys(CONNECTIVES, _break_chain),
    **dict.fromkeys(("forall", "exists", "unique"), _break_quantifier),
    "ite": _break_ite,
    "case": _break_case,
    "compare": _break_compare,
    "fold": _break_fold,
    **dict.fromkeys(("add", "sub", "concat", "mul"), _break_operation),
    **dict.fromkeys(("vector", "index", "call", "apply"), _break_brackets),
    **dict.fromkeys(("comprehension", "collect"), _break_listed),
}
"""The heads at which a formula is broken into lines."""
