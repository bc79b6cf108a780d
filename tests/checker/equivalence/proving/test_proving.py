"""Rules that are true are proved with the strength that they have; rules that are false never are."""

from __future__ import annotations

from functools import cache
from typing import cast

import pytest
from sampling import left
from sonnx.checker.equivalence.proving import axioms, validation
from sonnx.checker.equivalence.proving.judging import judge
from sonnx.checker.equivalence.proving.rules import OPEN, PROVED, REFUTED, Claim, Rule, Verdict
from sonnx.spec.library import extended, own_specification

HEADER = "types T = float16, bfloat16, float, double"
GEMM = """(A: T[k, m], B: T[k, n], C: T[c...]) -> Y: T "x." {types}
  from M = MatMul@13(Transpose@13(A; perm = [1, 0]), B)
       Y = Add@14(M, C)
  to   Y = Gemm@13(A, B, C; transA = {transposed})"""
CLIP = """(X: T[d...], lo: T[], hi: T[]) -> Y: T "x." {types}
  from Y = Clip@13(Relu@14(X), lo, hi)
  to   Y = Clip@13(X, lo, hi)"""
REAL = """(X: T[a, b], Z: T[b, c], k: T[]) -> Y: T "x." {types}
  from Y = MatMul@13(Mul@14(X, k), Z)
  to   Y = {right}
  in reals"""
UNARY = """(X: T[d...]) -> Y: T "x." {types}
  from Y = {left}
  to   Y = {right}
  exactly"""
ZERO = """(X: T[d...], z: T[]) -> Y: T "x." {types}
  from Y = {op}@14(X, z)
  to   Y = X
  when z[] = {value} "x."
  exactly"""
TRANSPOSED = """(X: T[d...]) -> Y: T "x."
  from Y = Transpose@13(Transpose@13(X; perm = p); perm = q)
  to   Y = Transpose@13(X; perm = [{one}[k] for k in {other}])
  when given p and given q "x."
  exactly"""
POSITIVE = 'when lo[] >= 0 and 1 / lo[] > 0 "x."'
FITS = 'when len(c) <= 2 and broadcast([m, n], c) = [m, n] "x."'

TRUE = {
    "Same": (UNARY.format(types="", left="Identity@14(X)", right="X"), "exact"),
    "Twice": (UNARY.format(types=HEADER, left="Neg@13(Neg@13(X))", right="X"), "exact"),
    "Relus": (UNARY.format(types=HEADER, left="Relu@14(Relu@14(X))", right="Relu@14(X)"), "exact"),
    "Ones": (ZERO.format(types=HEADER, op="Mul", value=1), "exact"),
    "Clips": (CLIP.format(types=HEADER) + f"\n  {POSITIVE}\n  exactly", "exact"),
    "Product": (GEMM.format(types=HEADER, transposed=1) + f"\n  {FITS}\n  exactly", "exact"),
    "Turned": (TRANSPOSED.format(one="p", other="q"), "exact"),
    "Scaled": (REAL.format(types=HEADER, right="Mul@14(MatMul@13(X, Z), k)"), "reals"),
    "Divided": (
        '(X: T[d...], Z: T[d...]) -> Y: T "x." types T = float\n'
        "  from Y = Mul@14(Reciprocal@13(X), Z)\n  to Y = Div@14(Z, X)\n  in reals",
        "reals",
    ),
    "Converted": (
        '(X: T[d...]) -> Y: int32 "x." types T = float\n'
        "  from Y = Transpose@13(Cast@13(X; to = 6); perm = p)\n  to Y = Cast@13(Transpose@13(X; perm = p); to = 6)\n"
        '  when given p "x."\n  exactly',
        "exact",
    ),
}
"""Rules with the strength with which they are proved."""

FALSE = {
    "Zeros": ZERO.format(types=HEADER, op="Add", value=0),
    "Twos": ZERO.format(types=HEADER, op="Mul", value=2),
    "Negated": UNARY.format(types=HEADER, left="Neg@13(X)", right="X"),
    "Absolute": UNARY.format(types=HEADER, left="Relu@14(X)", right="Abs@13(X)"),
    "AnyBound": CLIP.format(types=HEADER) + "\n  exactly",
    "MinusZero": CLIP.format(types=HEADER) + '\n  when lo[] >= 0 "x."\n  exactly',
    "AnyAddend": GEMM.format(types=HEADER, transposed=1) + "\n  exactly",
    "NotTransposed": GEMM.format(types=HEADER, transposed=0) + f"\n  {FITS}\n  exactly",
    "Backwards": TRANSPOSED.format(one="q", other="p"),
    "NotScaled": REAL.format(types=HEADER, right="MatMul@13(X, Z)"),
    "Squared": REAL.format(types=HEADER, right="Mul@14(Mul@14(MatMul@13(X, Z), k), k)"),
    "ScaledExactly": REAL.format(types=HEADER, right="Mul@14(MatMul@13(X, Z), k)").replace("in reals", "exactly"),
    "SubTurned": (
        '(X: T[d...], Z: T[d...]) -> Y: T "x." types T = float\n'
        "  from Y = Sub@14(X, Z)\n  to Y = Sub@14(Z, X)\n  exactly"
    ),
    "ExpDropped": (
        '(X: T[d...]) -> Y: int64 "x." types T = float\n  from Y = ArgMax@13(Exp@13(X); axis = 0)\n'
        "  to Y = ArgMax@13(X; axis = 0)\n  exactly"
    ),
}
"""Rules that are wrong."""
AXES = {"Backwards": 3}
"""So many axes it takes to see it, where two do not: any two permutations of two axes may be exchanged."""


@cache
def verdict(name: str, text: str, most: int = 2, *, search: bool = True) -> Verdict:
    """The verdict about a rule of this text."""
    text = text.replace('"x."', '"A rule." source "tests"', 1)
    core = extended(own_specification(), {f"{name}.sonnx": f"rewrite {name} {text}\n"}).rules[name]
    rule = Rule(core.name, cast("Claim", core.claim), core.left, core.right, core.stored)
    return judge(rule, most=most, search=search)


@pytest.mark.parametrize("name", [left(name) if name == "Turned" else name for name in TRUE])
def test_true_rules_are_proved(name: str) -> None:
    text, strength = TRUE[name]
    found = verdict(name, text)
    assert (found.verdict, found.strength) == (PROVED, strength), found.reasons
    assert found.holds


@pytest.mark.parametrize("name", FALSE)
def test_false_rules_are_not_proved(name: str) -> None:
    found = verdict(name, FALSE[name], AXES.get(name, 2))
    assert found.verdict in (REFUTED, OPEN)
    assert not found.holds


@pytest.mark.parametrize("name", ["Zeros", "MinusZero", "AnyAddend", "Backwards", "NotScaled", "ScaledExactly"])
def test_a_false_rule_is_refuted_by_few_elements(name: str) -> None:
    witness = verdict(name, FALSE[name], AXES.get(name, 2)).witness
    assert witness is not None
    assert witness.elements <= 10
    assert witness.left != witness.right


def test_a_rule_that_is_never_possible_is_not_proved() -> None:
    text = UNARY.format(types=HEADER, left="Neg@13(X)", right="X").replace("exactly", 'when len(d) < 0 "x."\n  exactly')
    found = verdict("Impossible", text)
    assert found.verdict == OPEN
    assert "no instance is possible" in found.reasons[0]


def test_a_question_that_comes_up_again_while_it_is_asked_has_no_answer() -> None:
    text = (
        '(X: int64[n]) -> Y: int64 "x."\n  from Y = Mod@13(Neg@13(X), Constant@25(; value_int = 3))\n'
        "  to Y = Neg@13(Mod@13(X, Constant@25(; value_int = 3)))\n  exactly"
    )
    assert verdict("Remainder", text, search=False).verdict == OPEN


def test_a_right_side_without_a_value_is_no_dropped_case() -> None:
    text = UNARY.format(types="types T = float", left="Identity@14(X)", right="Unsqueeze@11(X; axes = [7])")
    assert verdict("Undefined", text).verdict != PROVED


# ---- Wrong right sides, made by changes of right ones -------------------------------------------


CHANGES = (
    ("X", "Neg@13(X)"), ("X", "Relu@14(X)"), ("X", "Abs@13(X)"), ("Relu@14", "Neg@13"), ("Relu@14", "Abs@13"),
    ("Mul@14", "Add@14"), ("Mul@14", "Sub@14"), ("Mul@14", "Div@14"), ("Div@14(Z, X)", "Div@14(X, Z)"),
    ("Div@14", "Mul@14"), ("MatMul@13(X, Z)", "MatMul@13(X, Neg@13(Z))"), ("(A, B, C; ", "(A, B, C; alpha = 2.0, "),
    ("(A, B, C; ", "(A, B, C; beta = 2.0, "), ("(A, B, C; ", "(A, B, C; beta = 0.0, "), ("(A, B, C; ", "(A, B; "),
    ("(A, B, C; ", "(B, A, C; "), ("transA = 1", "transA = 0"), ("transA = 1", "transA = 1, transB = 1"),
    ("[p[k] for k in q]", "p"), ("[p[k] for k in q]", "q"), ("[p[k] for k in q]", "[q[k] for k in p]"),
    ("[p[k] for k in q]", "reverse([p[k] for k in q])"), ("to = 6", "to = 7"), ("lo, hi", "hi, lo"), ("lo, hi", "lo"),
    ("lo, hi", "lo, Neg@13(hi)"), ("Clip@13(X", "Clip@13(Neg@13(X)"), ("Clip@13(X", "Clip@13(Abs@13(X)"),
)  # fmt: skip
"""What is changed in right sides; for the true rules none of these leaves a right side that is right."""
SAMPLE = 8


def wrong() -> list[tuple[str, str]]:
    """The true rules with one change in the right side, or without their condition, and the names of these."""
    made = []
    for name, (text, _) in TRUE.items():
        before, right = text.split("\n  to ", 1)
        for k, (old, new) in enumerate(CHANGES):
            side, *rest = right.split("\n")
            places = [p for p in range(len(side)) if side.startswith(old, p) and not side[p - 1 : p].isalnum()]
            for p in places:
                changed = side[:p] + new + side[p + len(old) :]
                if changed.replace(" ", "") not in SAME.get(name, ()):
                    made.append((f"{name}{k}x{p}", "\n".join((f"{before}\n  to {changed}", *rest))))
    return made


SAME = {"Relus": ("Y=Relu@14(Relu@14(X))",), "Clips": ("Y=Clip@13(Relu@14(X),lo,hi)",)}
"""Changes that leave a right side right: a Relu more."""


def _not_proved(name: str, text: str) -> None:
    from sonnx.spec.language.errors import SpecError

    try:
        found = verdict(name, text, 3 if name.startswith("Turned") else 2)
    except SpecError:
        return  # the change made no rule
    assert found.verdict != PROVED, text


@pytest.mark.parametrize(("name", "text"), wrong()[:: max(1, len(wrong()) // SAMPLE)])
def test_wrong_right_sides_are_not_proved(name: str, text: str) -> None:
    _not_proved(name, text)


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "text"), wrong())
def test_no_wrong_right_side_is_proved(name: str, text: str) -> None:
    _not_proved(name, text)


# ---- The laws -----------------------------------------------------------------------------------


def test_the_laws_hold_for_short_types() -> None:
    found = list(validation.by_solver(("float16", "int8", "uint8")))
    assert len(found) > 20
    assert [it for it in found if it.answer != "unsat"] == []


def test_the_solver_refutes_what_is_no_law() -> None:
    from sonnx.checker.equivalence.proving.scalars import differ
    from sonnx.semantics.formulas.terms import Term

    x = axioms.x("float16")
    assert differ(Term("@+", ("float16", x, axioms.number("float16", "0"))), x) == "sat"
    assert differ(Term("@*", ("float16", x, axioms.number("float16", "0"))), axioms.number("float16", "0")) == "sat"


@pytest.mark.campaign
def test_the_laws_hold_for_all_types() -> None:
    assert [it for it in validation.by_solver() if it.answer != "unsat"] == []
    assert [kind for kind in axioms.FLOATS if validation.signs(kind, 600) != "unsat"] == []


@pytest.mark.parametrize("kind", validation.SMALL)
def test_a_square_is_a_product(kind: str) -> None:
    assert validation.squares(kind)
