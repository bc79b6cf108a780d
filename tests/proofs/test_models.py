"""Finite models: what z3 gives is read off its text and evaluated, formula by formula."""

import random
from dataclasses import replace
from itertools import pairwise, product
from types import SimpleNamespace

import pytest
from sonnx.proofs.kernel.formulas import FALSE, TRUE, Argument, Signature, Term, exists, forall
from sonnx.proofs.kernel.theory import Hypothesis
from sonnx.proofs.models import interpretation
from sonnx.proofs.models import search as models
from sonnx.proofs.models.evaluation import truth
from sonnx.proofs.models.search import Wanted
from sonnx.semantics.errors import InternalError

SYMBOLS = {
    "c": Signature((), "Thing"),
    "f": Signature(("Thing",), "Thing"),
    "g": Signature(("Thing", "Int"), "Int"),
    "likes": Signature(("Thing", "Thing"), "Bool"),
}


def wanted(*formulas: Argument, free: bool = True) -> Wanted:
    return Wanted(tuple(Hypothesis("premise", str(at), it) for at, it in enumerate(formulas)), SYMBOLS, (), free=free)


def likes(one: str, other: str) -> Term:
    return Term("likes", (one, other))


def apart(*names: Argument) -> Argument:
    """The elements are different."""
    pairs = [(x, y) for at, x in enumerate(names) for y in names[:at]]
    return Term("and", tuple(Term("not", (Term("=", pair),)) for pair in pairs))


def many(size: int) -> Argument:
    """There are so many things."""
    names = [f"x{at}" for at in range(size)]
    return exists([(name, "Thing") for name in names], apart(*names))


@pytest.mark.parametrize(("size", "found"), [(2, True), (3, True), (6, True), (7, False)])
def test_a_model_has_no_more_elements_than_are_tried(size: int, found: bool) -> None:
    assert (models.search(wanted(many(size))) is not None) == found


def test_many_variables_are_no_obstacle() -> None:
    names = [f"x{at}" for at in range(15)]
    chain = tuple(likes(*pair) for pair in pairwise(names))
    chained = forall([(name, "Thing") for name in names], Term("=>", (*chain, likes(names[0], names[-1]))))
    some = exists([("x", "Thing"), ("y", "Thing")], likes("x", "y"))
    model = models.least(wanted(chained, apart("c", Term("f", ("c",))), some))
    assert model is not None
    assert len(model.universes["Thing"]) == 2


def test_what_has_infinite_models_only_has_none() -> None:
    """Each thing has one above it, and nothing is above itself."""
    above = forall([("x", "Thing")], exists([("y", "Thing")], likes("x", "y")))
    order = forall([(it, "Thing") for it in "xyz"], Term("=>", (likes("x", "y"), likes("y", "z"), likes("x", "z"))))
    loops = forall([("x", "Thing")], Term("not", (likes("x", "x"),)))
    assert models.search(wanted(above, order)) is not None
    assert models.search(wanted(above, order, loops)) is None


def test_numbers_stay_in_their_range_and_reach_those_that_formulas_speak_of() -> None:
    nine = forall([("x", "Thing")], Term("=", (Term("g", ("x", 1)), 9)))
    assert models.search(wanted(nine)) is not None
    every = forall([("i", "Int")], exists([("x", "Thing")], Term("<", ("i", Term("g", ("x", 0))))))
    assert models.search(wanted(every)) is None


@pytest.mark.parametrize("free", [True, False])
def test_a_model_in_which_a_hypothesis_does_not_hold_is_an_error(monkeypatch: pytest.MonkeyPatch, free: bool) -> None:
    asked = wanted(exists([("x", "Thing")], likes("x", "c")), forall([("x", "Thing")], likes("x", "c")), free=free)
    assert models.search(asked) is not None
    written = {True: models.quantified, False: models.question}[free]

    def other(of: Wanted, bounds: models.Bounds) -> str:
        less = replace(of, hypotheses=of.hypotheses[:1])
        return f"{written(less, bounds)}(assert (not (likes c c)))\n"

    monkeypatch.setattr(models, written.__name__, other)
    with pytest.raises(InternalError, match="does not hold"):
        models.search(asked)


def test_the_text_of_a_model_is_read() -> None:
    text = """(
      ;; universe for Thing: Thing!val!0 Thing!val!1
      (declare-fun Thing!val!0 () Thing)
      (forall ((x Thing)) (or (= x Thing!val!0) (= x Thing!val!1)))
      (define-fun c () Thing Thing!val!1)
      (define-fun k!7 ((x!0 Thing)) Int (- 3))
      (define-fun |odd name| ((x!0 Thing) (x!1 Int)) Int
        (let ((a!1 (ite (= x!0 Thing!val!1) (k!7 x!0) 4))) (ite (>= x!1 0) a!1 (- 1))))
    )"""
    printed = interpretation.parsed(text)
    named: dict[Argument, str] = {"Thing!val!0": "Thing.1", "Thing!val!1": "Thing.2"}
    keys = {"c": [], "odd name": [["Thing.1", "Thing.2"], [-1, 0]], "likes": [["Thing.1"], ["Thing.2"]]}
    found = interpretation.tables(printed, named, keys, {"c": "Thing.1", "odd name": 0, "likes": FALSE})
    assert dict(found["c"]) == {(): "Thing.2"}
    assert dict(found["odd name"]) == {("Thing.1", -1): -1, ("Thing.1", 0): 4, ("Thing.2", -1): -1, ("Thing.2", 0): -3}
    assert () not in found["likes"]
    assert dict(found["likes"]) == {("Thing.1", "Thing.2"): "false"}


THINGS = "(define-fun Thing.1 () Thing Thing!val!0) (define-fun Thing.2 () Thing Thing!val!1)"
NO_MODELS = {
    "equal texts": (
        Term("=", ("a", "a")), f"{THINGS} (define-fun a () Thing Thing!val!0) (define-fun b () Thing Thing!val!0)"
    ),
    "a number outside the range": (Term("=", ("k", 9)), "(define-fun k () Int 9)"),
    "a sum of three": (Term("=", ("k", 1)), "(define-fun k () Int (+ 1 0 1))"),
    "an equation of three": (Term("=", ("k", 1)), "(define-fun k () Int (ite (= 1 1 0) 1 0))"),
    "two definitions": (Term("=", ("k", 1)), "(define-fun k () Int 2) (define-fun k () Int 1)"),
    "an element that there is not": (
        Term("not", (Term("=", ("c", Term("f", ("c",)))),)),
        f"{THINGS} (define-fun c () Thing Thing!val!0) (define-fun f ((x!0 Thing)) Thing Thing!val!7)",
    ),
    "no truth value": (
        Term("not", (likes("c", "c"),)),
        f"{THINGS} (define-fun c () Thing Thing!val!0) (define-fun likes ((x Thing) (y Thing)) Bool maybe)",
    ),
    "no integer": (Term("<", (0, "k")), "(define-fun k () Int 0.5)"),
    "an array": (Term("=", ("k", 1)), "(define-fun k () Int ((as const (Array Int Int)) 1))"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_MODELS)
def test_what_is_printed_and_is_no_model_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are different elements and numbers are in the range, though no hypothesis says so."""

    class Said:
        def check(self, *_question: object, **_options: object) -> SimpleNamespace:
            return SimpleNamespace(status="sat", model=f"({printed})", reason="")

    formula, printed = NO_MODELS[name]
    symbols = {**SYMBOLS, **dict.fromkeys("ab", Signature((), "Thing")), "k": Signature((), "Int")}
    texts = (Term("=", ("b", "b")),) if name == "equal texts" else ()
    asked = replace(wanted(formula, *texts), symbols=symbols, texts=("a", "b"))
    monkeypatch.setattr(models, "Session", Said)
    with pytest.raises(InternalError):
        models.within(asked, models.Bounds({"Thing": 2}, (-1, 2)), 1, 10_000)


# ---- Quantifiers are read in an order that is quick -------------------------------------------


THINGS = ("a", "b", "d")


def drawn(at: random.Random, names: tuple[str, ...], depth: int) -> Argument:
    """A formula about things of these names."""
    if depth == 0:
        return at.choice([likes(at.choice(names), at.choice(names)), Term("=", (at.choice(names), at.choice(names)))])
    match at.choice(["not", "and", "or", "=>", "forall", "exists"]):
        case "not":
            return Term("not", (drawn(at, names, depth - 1),))
        case "forall" | "exists" as op:
            new = [f"v{depth}{it}" for it in range(at.randint(1, 3))]
            body = drawn(at, (*names, *new), depth - 1)
            return (forall if op == "forall" else exists)([(name, "Thing") for name in new], body)
        case op:
            return Term(op, tuple(drawn(at, names, depth - 1) for _ in range(at.randint(2, 3) if op != "=>" else 2)))


def plainly(formula: Argument, env: dict[str, str], table: set[tuple[str, str]]) -> bool:
    """The value of a formula, every quantifier read over all values in turn."""
    assert isinstance(formula, Term)
    match formula.op:
        case "likes":
            return (env[str(formula.args[0])], env[str(formula.args[1])]) in table
        case "=":
            return env[str(formula.args[0])] == env[str(formula.args[1])]
        case "forall" | "exists" as op:
            *binders, body = formula.args
            names = [it.op for it in binders if isinstance(it, Term)]
            values = [plainly(body, {**env, **dict(zip(names, it, strict=True))}, table)
                      for it in product(THINGS, repeat=len(names))]  # fmt: skip
            return all(values) if op == "forall" else any(values)
        case op:
            parts = [plainly(it, env, table) for it in formula.args]
            said = {"not": not parts[0], "and": all(parts), "or": any(parts), "=>": not parts[0] or parts[-1]}
            return said[op]


def test_formulas_have_the_value_that_reading_them_plainly_gives() -> None:
    at, values = random.Random(7), []
    for _ in range(300):
        table = {pair for pair in product(THINGS, repeat=2) if at.random() < 0.5}
        rows: dict[tuple[Argument, ...], Argument] = {
            pair: "true" if pair in table else "false" for pair in product(THINGS, repeat=2)
        }
        formula = drawn(at, ("a", "b"), 4)
        env = {it: it for it in THINGS}
        values.append(plainly(formula, env, table))
        assert truth(formula, env, {"likes": rows}, {"Thing": THINGS}) == ("true" if values[-1] else "false")
    assert 50 < sum(values) < 250
    assert truth(TRUE, {}, {}, {}) == "true"
