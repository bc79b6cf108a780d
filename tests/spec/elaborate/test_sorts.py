"""The sorts of expressions."""

from __future__ import annotations

from sonnx.spec.elaborate.core import Binding
from sonnx.spec.elaborate.declarations import Elaboration, elaborate
from sonnx.spec.elaborate.formulas import Cores
from sonnx.spec.elaborate.infer import infer
from sonnx.spec.elaborate.scope import Ledger, Scope
from sonnx.spec.elaborate.sorts import BUILT_IN, ELEMENT, TYPE, VECTOR, accepts, array_of, join
from sonnx.spec.language.parse import parse, parse_expression
from sonnx.spec.language.syntax import BOOL, INT, NOWHERE, TEXT, Sort
from tables import table

TEXT_OF_FACTS = """
sort Node "A node."
sort Tensor "A tensor."
sort Memory "A map."
fact nodes(): set Node "The nodes."
fact outs(n: Node): set Tensor "The outputs."
fact axes(n: Node): list Int "A list."
fun len(s: set Any): Int "The number of members."
fun maximum(a: Any, b: Any): Any "The greater one."
fun cast(t: Type, e: Any): Element "e as an element of type t."
"""
NODE, TENSOR = Sort("Node"), Sort("Tensor")
VARIABLES = {"n": NODE, "t": TENSOR, "M": Sort("Memory"), "k": INT, "s": TEXT}

GRAPH = [
    ("1", "Int"),
    ("0.5", "Rational"),
    ("1 + k", "Int"),
    ("1 / k", "Rational"),
    ("k + 0.5", "Rational"),
    ("outs(n)", "set Tensor"),
    ("len(outs(n)) + len(axes(n))", "Int"),
    ("axes(n)[0]", "Int"),
    ("axes(n) ++ [1]", "list Int"),
    ("axes(n) * 2 + axes(n)", "list Int"),
    ("axes(n) div 2 > 0", "Bool"),
    ("[]", "list Any"),
    ("[] ++ [1]", "list Int"),
    ("[n, n]", "list Node"),
    ("[i * i for i < 3 if i != 1]", "list Int"),
    ("{u for m in nodes(), u in outs(m) if u = t}", "set Tensor"),
    ("{u |-> k for u in outs(n)}", "map Tensor to Int"),
    ("M ++ {u |-> k for u in outs(n)}", "Memory"),
    ("t in outs(n)", "Bool"),
    ("k not in axes(n)", "Bool"),
    ('s in ["a", "b"]', "Bool"),
    ("if k = 1 then outs(n) else outs(n)", "set Tensor"),
    ('case s { "a": 1; else: k }', "Int"),
    ("sum(i < k) i * i", "Int"),
    ("count(i < k) (i = 1)", "Int"),
    ("argmax(i < k) i", "Int"),
    ("max(i < k from 0.5) i", "Rational"),
    ("any(i < k) (i = k)", "Bool"),
    ("maximum(k, 0.5)", "Rational"),
    ("maximum(axes(n), 0)", "list Int"),
    ("-axes(n)", "list Int"),
]  # fmt: skip


def elaboration() -> Elaboration:
    found = elaborate([parse(TEXT_OF_FACTS, "t")])
    assert found.errors == ()
    return found


@table(("text", "sort"), GRAPH)
def test_an_expression_about_a_graph_has_its_sort(text: str, sort: str) -> None:
    facts = elaboration()
    scope = Scope({name: Binding(name, s, "parameter", NOWHERE) for name, s in VARIABLES.items()})
    ledger = Ledger(facts.functions, frozenset(facts.sorts) | BUILT_IN)
    assert str(infer(parse_expression(text), scope, ledger).sort) == sort
    assert [str(error) for error in ledger.errors] == []
    cores = Cores(facts.functions)
    assert str(cores.over(parse_expression(text), VARIABLES.items()).body.sort) == sort


OPERATOR = [
    ("X[i]", "Element"),
    ("X[0, k]", "Element"),
    ("X[i] + 1", "Element"),
    ("0.5 * X[i]", "Element"),
    ("if X[i] < 0 then 0 else X[i]", "Element"),
    ("if k = 0 then X[i] else -1", "Element"),
    ("sum(j < k) X[j, i] * X[i, j]", "Element"),
    ("X[i] / X[i]", "Element"),
    ("cast(T, k) * X[i]", "Element"),
    ("maximum(X[i], 0)", "Element"),
    ("i - d in d", "Bool"),
    ("k in k", "Bool"),
    ("d > 0 and d = d * 2", "Bool"),
    ("N[i]", "Int"),
]
WRONG = ["X[i] + k", "X[i] div 2", "cast(k, 1)", "X[X[i]]", "X + 1", "d + X[i]", "if k = 0 then X[i] else k", "T + 1"]


def infer_in_operator(text: str) -> tuple[Sort | None, list[str]]:
    sorts = {"X": array_of(ELEMENT), "N": array_of(INT), "i": VECTOR, "d": VECTOR, "k": INT, "T": TYPE}
    scope = Scope({name: Binding(name, s, "port", NOWHERE) for name, s in sorts.items()}, operator="Op")
    facts = elaboration()
    ledger = Ledger(facts.functions, BUILT_IN)
    return infer(parse_expression(text), scope, ledger).sort, [error.kind for error in ledger.errors]


@table(("text", "sort"), OPERATOR)
def test_an_expression_of_an_operator_has_its_sort(text: str, sort: str) -> None:
    found, errors = infer_in_operator(text)
    assert (str(found), errors) == (sort, [])


@table("text", WRONG)
def test_exact_and_element_arithmetic_do_not_mix(text: str) -> None:
    assert infer_in_operator(text)[1]


@table("left", [BOOL, INT, TEXT, NODE, VECTOR, Sort("set", NODE), Sort("set", INT), ELEMENT])
@table("right", [BOOL, INT, TEXT, NODE, VECTOR, Sort("set", NODE), Sort("set", INT), ELEMENT])
def test_join_is_symmetric_and_accepts_both(left: Sort, right: Sort) -> None:
    common = join(left, right)
    assert common == join(right, left)
    assert common is not None
    if common.name != "nothing":
        assert accepts(common, left)
        assert accepts(common, right)


def test_a_mistake_is_reported_once() -> None:
    text = (
        TEXT_OF_FACTS + 'define f(n: Node): Bool "A sentence." = nonsense(n) + 1 = len(nonsense(n)) and axes(n) = 1\n'
    )
    kinds = [error.kind for error in elaborate([parse(text, "t")]).errors]
    assert kinds == ["name/function", "name/function", "sort/equality"]
