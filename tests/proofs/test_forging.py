"""Nothing that the kernel did not make is a theorem, whatever is tried; `python -O` changes nothing."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from sampling import sampled
from sonnx.proofs.gates import gates
from sonnx.proofs.kernel import kernel
from sonnx.proofs.kernel.kernel import Forged, Refused, Theorem
from sonnx.proofs.kernel.theory import Theory
from sonnx.semantics.errors import InternalError
from sonnx.spec.language.parse import parse
from sonnx.spec.language.syntax import (
    Expr,
    FunctionDeclaration,
    Parameter,
    Premise,
    Property,
    Sort,
    SortDeclaration,
    Transition,
)
from sonnx.spec.library import Specification, build, specification
from sonnx.spec.parsed import read_texts

SECTIONS = ("sorts", "functions", "constraints", "transitions", "properties")
NAMES = frozenset({
    "SameStart", "Determinism", "FiresOnce", "OrderIndependence", "StillEnabled", "Producers", "DeadNodes", "NoNodes",
    "Everything", "SingleAssignment", "deterministic", "training", "with_body", "macro", "founded", "every",
    "is_input", "is_initializer", "writes", "valued", "ins", "executable", "all_nodes", "bodies", "operator", "body",
    "enabled", "unfired",
    "nodes",
})  # fmt: skip
"""What is tried here speaks of these."""


def words(part: object) -> Iterator[str]:
    """The names and texts in a part of the syntax."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from words(item)
    elif is_dataclass(part):
        for field in fields(part):
            yield from words(getattr(part, field.name))


def with_what_they_name(whole: Specification, names: frozenset[str]) -> Specification:
    """The text without the declarations that these names do not lead to: it is read in a fifth of the time."""
    made_of = {name for name, it in whole.functions.items() if it.kind in ("record", "field")}
    reached, new = set[str](), {*names, *made_of}
    while new:
        reached |= new
        named = (getattr(whole, section).get(name) for section in SECTIONS for name in new)
        new = {word for it in named for word in words(it)} - reached
    sections = {it: {n: d for n, d in getattr(whole, it).items() if n in reached} for it in SECTIONS}
    return replace(whole, **sections)


THEORY = Theory(with_what_they_name(specification(), NAMES))


def proved() -> Theorem:
    made = kernel.smt(THEORY, "SameStart")
    if isinstance(made, Refused):
        raise TypeError(made.reason)
    return made


once = cache(proved)
"""A theorem that no test changes."""


def bare() -> Theorem:
    return object.__new__(Theorem)


def look_alike() -> Theorem:
    made = object.__new__(Theorem)
    for name in ("name", "rule", "obligations", "digest"):
        object.__setattr__(made, name, getattr(once(), name))
    return made


def changed(field: str, value: object) -> Theorem:
    made = proved()
    object.__setattr__(made, field, value)
    return made


def another_class() -> object:
    class Theorem:
        name, rule, obligations, digest = "SameStart", "smt", (), THEORY.digest()

    return Theorem()


@pytest.mark.parametrize(
    "forge",
    [
        bare,
        look_alike,
        lambda: changed("name", "Determinism"),
        lambda: changed("obligations", ()),
        lambda: changed("digest", "0"),
        another_class,
        lambda: None,
    ],
    ids=["bare", "look-alike", "name", "obligations", "digest", "class", "none"],
)
def test_a_forged_theorem_is_recognised(forge: Callable[[], object]) -> None:
    with pytest.raises(Forged):
        kernel.genuine(THEORY, forge())


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: Theorem(),
        lambda: Theorem("Determinism", "smt", ()),
        lambda: type("Mine", (Theorem,), {}),
        lambda: setattr(proved(), "name", "Determinism"),
        lambda: delattr(proved(), "name"),
        lambda: pickle.dumps(once()),
        lambda: copy.copy(once()),
        lambda: copy.deepcopy(once()),
    ],
    ids=["call", "arguments", "subclass", "setattr", "delattr", "pickle", "copy", "deepcopy"],
)
def test_a_theorem_is_not_made_changed_or_copied(attempt: Callable[[], object]) -> None:
    with pytest.raises(Forged):
        attempt()


def test_the_dataclass_tools_do_not_apply_to_theorems() -> None:
    with pytest.raises(TypeError):
        replace(once(), name="Determinism")  # type: ignore[type-var]


def test_changing_the_symbols_of_an_obligation_changes_the_theorem() -> None:
    made = proved()
    symbols = made.obligations[0].symbols
    if not isinstance(symbols, dict):
        raise TypeError("the symbols are no dictionary")
    symbols.clear()
    with pytest.raises(Forged):
        kernel.genuine(THEORY, made)


def test_a_theorem_of_another_text_is_none_of_this_one() -> None:
    texts = read_texts()
    name = "3-execution.sonnx"
    other = Theory(build({**texts, name: texts[name].replace("enabled(n, M), W in gives(n, M)", "W in gives(n, M)")}))
    made = kernel.smt(other, "SameStart")
    assert isinstance(made, Theorem)
    assert kernel.genuine(other, made) is made
    with pytest.raises(Forged, match="another text"):
        kernel.genuine(THEORY, made)


def test_a_theorem_with_other_definitions_closed_is_none_of_this_theory() -> None:
    made = kernel.smt(Theory(THEORY.text, frozenset()), "SameStart")
    with pytest.raises(Forged, match="another text"):
        kernel.genuine(THEORY, made)


def test_a_text_that_is_changed_afterwards_disowns_its_theorems() -> None:
    functions = dict(THEORY.text.functions)
    theory = Theory(replace(THEORY.text, functions=functions))
    made = kernel.smt(theory, "SameStart")
    functions["unfired"] = replace(functions["unfired"], body=functions["enabled"].body)
    with pytest.raises(Forged, match="another text"):
        kernel.genuine(theory, made)


def test_a_theorem_of_another_kernel_is_none_of_this_one() -> None:
    import importlib.util

    found = importlib.util.find_spec("sonnx.proofs.kernel.kernel")
    if found is None or found.loader is None:
        raise TypeError("there is no kernel")
    second = importlib.util.module_from_spec(found)
    sys.modules["sonnx.proofs.second_kernel"] = second
    try:
        found.loader.exec_module(second)
        theorem = second.smt(THEORY, "SameStart")
        with pytest.raises(Forged):
            kernel.genuine(THEORY, theorem)
    finally:
        del sys.modules["sonnx.proofs.second_kernel"]


def test_a_proof_without_its_lemmas_is_refused() -> None:
    with pytest.raises(Forged, match="rests on"):
        kernel.smt(THEORY, "Determinism")


def test_a_forged_lemma_proves_nothing() -> None:
    with pytest.raises(Forged):
        kernel.smt(THEORY, "FiresOnce", [changed("name", "Determinism")])


# ---- A text that says one thing now and another later ------------------------------------------


class Liar(dict[str, Property]):
    """What is read one by one is not what is listed."""

    def __getitem__(self, name: str) -> Property:
        found = super().__getitem__(name)
        return replace(found, goal=Expr("true", ())) if name == "Determinism" else found


class OddText(str):
    """A name that is equal to every other one."""

    __slots__ = ()

    def __eq__(self, _other: object) -> bool:
        return True

    def __ne__(self, _other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return hash("SameValues")


class OddExpr(Expr):
    """An expression that has other parts whenever it is asked."""

    __slots__ = ()

    def __eq__(self, _other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class LyingTheory(Theory):
    """A theory of a false text that gives the digest of the true one."""

    def digest(self) -> str:
        return THEORY.digest()


class LyingText(Specification):
    """A specification whose laws are others each time."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> object:
        found = super().__getattribute__(name)
        return {**found, "Producers": replace(found["Producers"], goal=FALSE)} if name == "properties" else found


def stated(*declarations: str) -> Theory:
    """The text with further declarations of part 6."""
    made = {it.name: it for it in parse("\n".join(declarations), "forged").declarations}
    text = THEORY.text
    functions = {**text.functions, **{name: it for name, it in made.items() if isinstance(it, FunctionDeclaration)}}
    properties = {**text.properties, **{name: it for name, it in made.items() if isinstance(it, Property)}}
    return Theory(replace(text, functions=functions, properties=properties))


def changed_text(**sections: object) -> Theory:
    return Theory(replace(THEORY.text, **sections))  # type: ignore[arg-type]


def with_property(made: Property, name: str = "") -> Theory:
    return changed_text(properties={**THEORY.text.properties, name or made.name: made})


FALSE = Expr("false", ())
PROPERTIES, FUNCTIONS = THEORY.text.properties, THEORY.text.functions
UNSOUND = replace(PROPERTIES["SameStart"], name="Forged", premises=(), needs=(), goal=FALSE)


@pytest.mark.parametrize(
    "theory",
    sampled([
        LyingTheory(replace(THEORY.text, properties={**PROPERTIES, "SameStart": replace(UNSOUND, name="SameStart")})),
        changed_text(properties=Liar(PROPERTIES)),
        changed_text(functions=Liar(FUNCTIONS)),  # type: ignore[arg-type]
        changed_text(properties=MappingProxyType(Liar(PROPERTIES))),
        Theory(LyingText(*(getattr(THEORY.text, it.name) for it in fields(Specification)))),
        Theory(SimpleNamespace(**{it.name: getattr(THEORY.text, it.name) for it in fields(Specification)})),  # type: ignore[arg-type]
        with_property(replace(UNSOUND, goal=OddExpr("false", ()))),
        with_property(replace(UNSOUND, name=OddText("Forged")), "Forged"),
        with_property(UNSOUND, "SameStart"),
        with_property(UNSOUND, OddText("Forged")),
        Theory(THEORY.text, frozenset({OddText("training")})),
        Theory(THEORY.text, {"training"}),  # type: ignore[arg-type]
        with_property(replace(UNSOUND, parameters=(Parameter("n.1", Sort("Node")),))),
        with_property(replace(UNSOUND, parameters=(Parameter("n Node) (assert false", Sort("Node")),))),
        with_property(replace(UNSOUND, parameters=(Parameter("n", Sort("Node) (assert false")),))),
        with_property(replace(UNSOUND, parameters=(*UNSOUND.parameters, *UNSOUND.parameters))),
        with_property(replace(UNSOUND, premises=(Premise("n", FALSE),))),
        with_property(replace(UNSOUND, goal=Expr("call", ("no_such_function",)))),
    ], 9),
    ids=["digest", "items", "functions", "proxy", "text", "names", "expression", "key", "other-name", "odd-name",
         "opaque", "set", "bound-name", "assertion", "sort", "twice", "let", "unknown"],
)  # fmt: skip
def test_only_plain_and_sound_texts_are_read(theory: Theory) -> None:
    for name in ("Forged", "SameStart"):
        with pytest.raises(Forged):
            kernel.smt(theory, name)
    with pytest.raises(Forged):
        kernel.genuine(theory, once())


def test_a_theory_that_is_given_another_text_disowns_its_theorems() -> None:
    theory = Theory(THEORY.text)
    made = kernel.smt(theory, "SameStart")
    assert kernel.genuine(theory, made) is made
    object.__setattr__(theory, "text", with_property(replace(PROPERTIES["SameStart"], doc="Another one.")).text)
    with pytest.raises(Forged, match="another text"):
        kernel.genuine(theory, made)


def test_a_clause_that_is_not_positive_is_no_text() -> None:
    theory = stated(
        'inductive odd(n: Node) "It is not odd." if not odd(n)',
        'theorem Forged "What is odd is not." for n: Node if odd(n) shows false',
    )
    with pytest.raises(Forged, match="mistake"):
        kernel.induction(theory, {"odd": "Forged"})


def test_a_name_that_equals_every_other_one_is_none_of_a_theorem() -> None:
    with pytest.raises(Forged):
        kernel.smt(THEORY, "OrderIndependence", [changed("name", OddText("SameStart"))])


class Turning(dict[str, str]):
    """The partners of an induction, others each time: of the members is used what is proved of none."""

    def __init__(self, *turns: dict[str, str]) -> None:
        super().__init__(turns[0])
        self.turns = list(turns)

    def items(self) -> Any:
        return (self.turns.pop() if len(self.turns) > 1 else self.turns[0]).items()


def test_partners_that_change_are_refused() -> None:
    theory = stated('theorem Forged "Nothing is founded." for n: Node if founded(n) shows false')
    with pytest.raises(Forged):
        kernel.induction(theory, Turning({"founded": "Forged"}, {"founded": "Forged"}))


@pytest.mark.parametrize("use", ["unfold", "introduce", "cases"])
def test_no_proof_looks_into_what_is_any_predicate(use: str) -> None:
    hints = replace(kernel.NO_HINTS, **{use: ("training",)})
    theory = stated('theorem Forged "No If trains." for n: Node if operator(n) = "If" shows not training(n)')
    with pytest.raises(Forged, match="any predicate"):
        kernel.smt(theory, "Forged", hints=hints)
    assert isinstance(kernel.smt(theory, "Forged"), Refused)


@pytest.mark.parametrize("name", ["Producers", "DeadNodes", "NoNodes"])
def test_laws_findings_and_situations_are_no_theorems(name: str) -> None:
    with pytest.raises(Forged, match="no theorem"):
        kernel.smt(THEORY, name)


# ---- Rules that prove too much ------------------------------------------------------------------

ZERO = """theorem ZeroLeq "Every number is at least 0." for k: Int
  let b = 0 <= k
  shows 0 <= k and (b or not b)"""


@pytest.mark.parametrize(
    "text",
    [
        ZERO,
        ZERO.replace("let b", "if true let b"),
        ZERO.replace("let b = 0 <= k", "if 0 <= k or 1 = 1 let b = 0 <= k"),
        'theorem ZeroLeq "Every number is at least 0." for k: Int, j: Int if 0 <= j shows 0 <= k or j < 0',
    ],
)
def test_induction_over_a_number_needs_the_premise_that_it_is_not_negative(text: str) -> None:
    theory = stated(text)
    with pytest.raises((InternalError, Forged)):
        kernel.natural(theory, "ZeroLeq", "k")
    gate = gates.countermodel(theory, "ZeroLeq")
    assert (gate.status, gate.model is not None) == ("failed", True)


WRITTEN = "is_input(t) or is_initializer(t) or (forall p in writes(t), q in writes(t): p = q)"
AVAL = f"""theorem Aval "What gets a value is written once." for t: Tensor
  if valued(t)
  needs Everything, SingleAssignment
  shows {WRITTEN}"""
AEXE = f"""theorem Aexe "So is what a node that is executed reads." for n: Node
  if executable(n)
  needs Everything
  shows forall t in ins(n): {WRITTEN}"""


def test_partners_of_an_induction_need_the_same() -> None:
    theory, names = stated(AVAL, AEXE), {"valued": "Aval", "executable": "Aexe"}
    with pytest.raises(Forged, match="do not need the same"):
        kernel.induction(theory, names)
    gate = gates.countermodel(theory, "Aexe")
    assert gate.status == "failed", "a tensor is written twice and read"
    whole = stated(AVAL, AEXE.replace("needs Everything", "needs Everything, SingleAssignment"))
    assert isinstance(kernel.induction(whole, names), tuple)
    assert gates.countermodel(whole, "Aexe").status == "passed"


def test_a_partner_without_a_parameter_is_read_of_all_its_values() -> None:
    theory = stated(
        'theorem Aval "A tensor that gets a value is the given one." for t: Tensor, u: Tensor if valued(t) shows t = u',
        'theorem Aexe "A node that is executed reads one tensor." for n: Node if executable(n) shows false',
    )
    assert isinstance(kernel.induction(theory, {"valued": "Aval", "executable": "Aexe"}), Refused)


# ---- Sorts without elements ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "goal",
    sampled([
        "exists n in all_nodes(): true",
        "exists n in every Node: true",
        "exists t in every Tensor: true",
        "exists p in every Port: true",
        "exists n in every Node: scope_free(n)",
        "not (forall n in every Node: n != n)",
        "exists k in every Int, n in every Node: k = 0 and n = n",
    ], 3),
)  # fmt: skip
def test_a_model_need_not_have_a_node(goal: str) -> None:
    theory = stated(
        'define scope_free(n: Node): Bool "Any node." = n = n',
        f'theorem Some "There is one." needs Everything shows {goal}',
    )
    assert isinstance(kernel.smt(theory, "Some"), Refused)
    gate = gates.countermodel(theory, "Some")
    assert gate.status == "failed"
    assert gate.model is not None


def test_what_is_known_of_each_element_does_not_give_one() -> None:
    theory = stated(
        'lemma Itself "There is a node where there is one." for n: Node shows exists m in every Node: m = n',
        'theorem Some "There is a node." needs Itself shows exists m in every Node: true',
    )
    lemma = kernel.smt(theory, "Itself")
    assert isinstance(lemma, Theorem)
    assert isinstance(kernel.smt(theory, "Some", [lemma]), Refused)


def test_a_model_has_a_main_graph_and_a_memory() -> None:
    theory = stated(
        'theorem Main "There is a graph." shows exists G in every Graph: true',
        'theorem Stores "There is a memory." shows exists M in every Memory: true',
    )
    for name in ("Main", "Stores"):
        assert isinstance(kernel.smt(theory, name), Theorem)


SCRIPT = """
from sonnx.proofs.kernel import kernel
from sonnx.proofs.kernel.theory import Theory
from sonnx.spec.library import specification
theory = Theory(specification())
made = object.__new__(kernel.Theorem)
for name, value in (("name", "KeepsValues"), ("rule", "smt"), ("obligations", ()), ("digest", theory.digest())):
    object.__setattr__(made, name, value)
for attempt in (lambda: kernel.genuine(theory, made), lambda: kernel.smt(theory, "FiresOnce", [made]),
                lambda: kernel.Theorem(), lambda: kernel.smt(theory, "FiresOnce")):
    try:
        attempt()
    except kernel.Forged:
        print("forged")
print(kernel.smt(theory, "SameStart"))
"""


def test_optimised_python_recognises_forged_theorems() -> None:
    ran = subprocess.run([sys.executable, "-O", "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout.split("\n")[:5] == ["forged"] * 4 + ["|- SameStart (smt)"], ran.stderr


# ---- Texts and objects that are read in two ways ------------------------------------------------

LOOK = replace(kernel.NO_HINTS, unfold=("odd",), introduce=("odd",))


def with_rule(*declarations: str) -> Theory:
    """The text with further declarations, rules of the machine and sorts too."""
    theory, made = stated(*declarations), parse("\n".join(declarations), "forged").declarations
    rules = {it.name: it for it in made if isinstance(it, Transition)}
    sorts = {it.name: it for it in made if isinstance(it, SortDeclaration)}
    text = theory.text
    return Theory(replace(text, transitions={**text.transitions, **rules}, sorts={**text.sorts, **sorts}))


@pytest.mark.parametrize("kind", ["fun", "fact", "Define", "define"])
def test_what_is_no_definition_has_no_body(kind: str) -> None:
    """A primitive that is said to be the contrary of itself is no predicate."""
    body = Expr("not", (Expr("call", ("odd", Expr("var", ("k",)))),))
    odd = FunctionDeclaration(kind, "odd", (Parameter("k", Sort("Int")),), Sort("Bool"), "It is not.", body)
    text = stated('theorem Forged "False." shows false').text
    theory = Theory(replace(text, functions={**text.functions, "odd": odd}))
    with pytest.raises(Forged):
        kernel.smt(theory, "Forged", hints=replace(LOOK, closed=("odd",)))


@pytest.mark.parametrize("name", sampled(["sin", "cos", "tan", "sinh", "rem", "pi"], 2))
def test_a_function_of_the_text_is_none_that_the_solver_knows(name: str) -> None:
    theory = stated(f'fun {name}(k: Int): Int "Any number."', f'theorem Forged "Not 1." shows {name}(5) != 1')
    assert isinstance(kernel.smt(theory, "Forged"), Refused)


def test_a_parameter_is_none_of_the_names_that_formulas_make() -> None:
    """That a sort has an element is a constant, which no parameter is."""
    theory = with_rule(
        'sort next "Any element."',
        'fact marked(x: next): Bool "Any of them."',
        "theorem Forged \"Each is marked.\" for some': Bool if not some' shows forall x in every next: marked(x)",
    )
    assert isinstance(kernel.smt(theory, "Forged"), Refused)


def test_a_rule_does_not_hide_that_a_clause_is_not_positive() -> None:
    theory = with_rule(
        """rule Step/odd "It gets to where an odd node does not get.":
  if n in nodes(G)
  -----------------------------
  (G, M, K) ~> (turned(n, G), M, K)""",
        'define turned(n: Node, G: Graph): Graph "Another graph, where n is odd." = if odd(n) then body(n) else G',
        """define stays(n: Node, G: Graph, M: Memory, K: Frames): Bool "The state stays the same."
  = (G, M, K) ~> (G, M, K) by Step/odd(n)""",
        """inductive odd(n: Node) "A node is odd where it is not."
  if exists G in every Graph, M in every Memory, K in every Frames: body(n) != G and stays(n, G, M, K)""",
        'theorem Forged "False." for n: Node, G: Graph if n in nodes(G) shows body(n) = G',
    )
    with pytest.raises(Forged, match="speaks about all graphs"):
        kernel.smt(theory, "Forged", hints=LOOK)


@pytest.mark.parametrize(
    ("name", "stated_so"),
    [
        ("with_body", "for n: Node if with_body(n) shows exists b in bodies(n): true"),
        ("macro", "for G: Graph, K: Frames, I: Memory, M: Memory if macro(G, K, I, M) shows M = I or M != I"),
    ],
)
def test_no_induction_looks_into_what_is_any_predicate(name: str, stated_so: str) -> None:
    theory = Theory(stated(f'theorem Forged "It has a clause." {stated_so}').text, frozenset({name}))
    with pytest.raises(Forged, match=r"inductive predicate|any predicate"):
        kernel.induction(theory, {name: "Forged"})


def test_no_induction_is_along_a_definition() -> None:
    theory = stated('theorem Forged "It has a body." for n: Node if with_body(n) shows exists b in bodies(n): true')
    with pytest.raises(Forged, match="no inductive predicate"):
        kernel.induction(theory, {"with_body": "Forged"}, hints=replace(kernel.NO_HINTS, closed=("with_body",)))


TRUE, ONE = Expr("true", ()), Expr("int", (1,))


@pytest.mark.parametrize(
    "goal",
    [
        Expr("compare", (FALSE,)),
        Expr("compare", (ONE, "like", Expr("int", (2,)))),
        Expr("compare", (ONE, "<")),
        Expr("and", ()),
        Expr("not", (FALSE, TRUE)),
        Expr("implies", (FALSE, FALSE, FALSE)),
        Expr("forall", (FALSE, TRUE)),
        Expr("true", (FALSE,)),
        Expr("int", (True,)),
        Expr("obvious", ()),
    ],
    ids=["one", "relation", "open", "nothing", "two", "three", "no-binder", "more", "bool", "head"],
)
def test_an_expression_is_one_that_the_grammar_makes(goal: Expr) -> None:
    with pytest.raises(Forged):
        kernel.smt(with_property(replace(UNSOUND, parameters=(), goal=goal)), "Forged")


# ---- A theory that is read once ---------------------------------------------------------------


def test_a_reading_that_the_kernel_did_not_make_is_none() -> None:
    read = kernel.reading(THEORY)
    for offered in (kernel.Reading(), copy.copy(read), copy.deepcopy(read), type("Reading", (kernel.Reading,), {})()):
        with pytest.raises(Forged):
            kernel.smt(offered, "SameStart")
    assert not vars(read)


def test_what_is_changed_behind_a_reading_changes_nothing() -> None:
    stated = THEORY.text.properties["SameStart"]
    properties = dict(THEORY.text.properties)
    theory = Theory(replace(THEORY.text, properties=properties))
    read = kernel.reading(theory)
    properties["SameStart"] = replace(stated, goal=Expr("false", ()), premises=())
    made = kernel.smt(read, "SameStart")
    assert isinstance(made, Theorem)
    assert made.digest == THEORY.digest()
    assert kernel.genuine(THEORY, made) is made
    with pytest.raises(Forged):
        kernel.genuine(theory, made)
    with pytest.raises(Forged):
        kernel.smt(theory, "StillEnabled", (made,))
