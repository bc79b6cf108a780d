"""The solver: the text that is asked, what its answers mean, and that the answers rest on the facts in the text."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import small_graphs as small
import worlds
from sonnx.checker.smt import smtlib, solver
from sonnx.semantics.errors import InternalError
from sonnx.semantics.facts.structure import SetTable, Structure, Unknown, ValueTable
from sonnx.semantics.formulas import ground as smt
from sonnx.semantics.formulas.terms import TRUE, Term
from sonnx.spec.library import specification
from tables import table

GOOD = small.SmallGraph(4, reads=((0, 1), (2,)), writes=((2,), (3,)), inputs=(0,), outputs=(3,), initializers=(1,))
"""x, w -> a -> b -> y, w stored: satisfies every constraint on graphs."""
EXEMPT = replace(GOOD, reads=((0, 1), (2,), (), ()), writes=((2,), (3,), (0, 0), (1, 1)))
"""As GOOD, and nodes write x and w twice, from which single assignment exempts them."""

NEEDED = {
    "SingleAssignment": {"all_tensors", "initializers", "inputs", "scope", "writes"},
    "NoWriteToInput": {"all_tensors", "inputs", "scope", "producers"},
    "OutputPositions": {"all_nodes", "outs", "writer", "writes"},
    "InputUsage": {"inputs", "main", "consumers"},
    "Sourced": {"all_nodes", "ins", "inputs", "initializers", "producers", "scope"},
    "GraphHasOutput": {"outputs", "main"},
    "OutputUsage": {"all_nodes", "outs", "consumers", "outputs", "scope"},
    "NodeConnected": {"all_nodes", "outs", "consumers", "outputs", "scope"},
    "Acyclic": {"all_nodes", "ins", "producers"},
    "Completeness": {
        "bodies",
        "body_names",
        "given_inputs",
        "initializers",
        "inputs",
        "ins",
        "main",
        "operand_positions",
        "operator",
        "outputs",
        "ports",
        "producers",
        "scope",
    },
    "Contributes": {"all_nodes", "outs", "outputs", "consumers", "scope"},
    "Deterministic": {"all_nodes", "operator", "schema_determinism"},
}


IRRELEVANT = {("NoWriteToInput", "producers")}
"""The producers of a tensor that is no input."""


def asked(name: str, graph: Any = None) -> smt.Query:
    found = specification()
    graph = graph or (EXEMPT if name == "SingleAssignment" else GOOD)
    return smt.query(found.constraints[name], found.functions, small.structure(graph), named=True)


def world(formula: str, **tables: Any) -> smt.Query:
    return smt.query(worlds.constraint(formula), worlds.functions(), worlds.structure(tables), named=True)


def text(query: smt.Query, *, negated: bool = True) -> str:
    return "".join(smtlib.smtlib(query, negated))


def told(script: str) -> str:
    """What the solver says to a script."""
    with solver._context() as context:
        return solver._tell(context, script).split()[0]


# ---- The text ---------------------------------------------------------------------------------


@table("name", NEEDED)
def test_the_core_names_the_facts_that_a_constraint_needs(name: str) -> None:
    answer = solver.solve(asked(name), 10)
    assert (answer.verdict, answer.answers) == ("holds", ("unsat",))
    assert set(answer.core) == NEEDED[name]


@table("name", NEEDED)
def test_a_removed_fact_changes_the_answer(name: str) -> None:
    """Without the definition of a fact that the constraint needs, the query is satisfiable. That is each definition in
    the text, but where the constraint looks at a fact only to find that it does not matter."""
    script = text(asked(name))
    assert told(script) == "unsat"
    facts = re.findall(r"^\((?:define-fun )?([\w.@$]+) (?:\(\) (?:Bool|Int) )?(use@\w+|\d+)\)$", script, re.MULTILINE)
    changed = []
    for symbol, known in facts:
        line = re.compile(rf"^\((?:define-fun )?{re.escape(symbol)} .*\)\n", re.MULTILINE)
        free = f"(declare-const {symbol} {'Int' if known.isdigit() else 'Bool'})\n(assert (let ("
        if f"(define-fun {symbol} " in script:
            weaker = line.sub(free.partition("\n")[0] + "\n", script, count=1)
        else:
            weaker = line.sub("", script, count=1).replace("(assert (let (", free, 1)
        assert weaker != script
        if told(weaker) == "sat":
            changed.append(symbol)
    expected = [symbol for symbol, _ in facts if (name, symbol.split(".")[0]) not in IRRELEVANT]
    assert changed == expected


@table("name", NEEDED)
def test_a_table_that_is_not_assumed_changes_the_answer(name: str) -> None:
    """Of the tables in the core each one that the query assumes is needed: without it the query is satisfiable."""
    query = asked(name)
    script = text(query)
    assumed = [query.assumed[fact] for fact in solver.solve(query, 10).core if fact in query.assumed]
    assert assumed
    for literal in assumed:
        weaker = re.sub(rf"(\(check-sat-assuming .*)\b{literal}\b", r"\1", script)
        assert weaker != script
        assert told(weaker) == "sat", literal


@table("name", NEEDED)
def test_without_its_assumptions_no_constraint_holds(name: str) -> None:
    script = text(asked(name))
    assert told(re.sub(r"\(check-sat-assuming .*\)", "(check-sat)", script)) == "sat"


def test_text_is_ascii_and_says_what_symbols_mean(tmp_path: Path) -> None:
    query = world('named(0) = "a" and exists n in next(1): "y z<" in words(0)')
    path = solver.dump(query, tmp_path, lambda sort, x: f"/{x}:É({sort})")
    written = path.read_text(encoding="ascii")
    assert path.name == "C.smt2"
    for line in (
        "; C: A claim.",
        ";   next(Node): set Node",
        ";   Node 2: /2:\\u{c9}(Node)",
        ";   text 0: a",
        "(next.1 use@next) ; 2",
        "(words.0 use@words) ; x y z<",
        "(set-logic QF_LIA)",
        "(check-sat-assuming (use@next use@words))",
    ):
        assert line in written.splitlines(), line


def test_text_without_numbers_is_in_the_logic_of_propositions() -> None:
    assert "(set-logic QF_UF)" in text(asked("Acyclic"))


def test_a_doc_sentence_cannot_leave_its_comment() -> None:
    constraint = worlds.constraint("true")
    hostile = smt.query(
        type(constraint)("C", "evil\n(exit) \u2028 \r(exit)", "static", constraint.formula),
        worlds.functions(),
        worlds.structure(),
    )
    assert all(line.startswith((";", "(set-", "(assert", "(check-sat")) for line in text(hostile).splitlines())


def test_the_text_is_the_same_with_another_hash_seed() -> None:
    program = (
        f"import sys; sys.path[:0] = {[str(Path(small.__file__).parent)]!r}\n"
        "import small_graphs as s\n"
        "from sonnx.checker.smt import smtlib\n"
        "from sonnx.semantics.formulas import ground as smt\n"
        "from sonnx.spec.library import specification\n"
        "f = specification()\n"
        "g = s.SmallGraph(4, ((0, 1), (2,)), ((2,), (3,)), (0,), (3,), (1,))\n"
        "q = [smt.query(f.constraints[n], f.functions, s.structure(g)) for n in ('Completeness', 'Deterministic')]\n"
        "print(''.join(''.join(smtlib.smtlib(x, True)) for x in q))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1


@table(("left", "right"), [(a, b) for a in (-7, -6, 0, 6, 7) for b in (-3, -2, 2, 3)])
def test_division_in_the_text_is_floor_division(left: int, right: int) -> None:
    structure = worlds.structure({"size": ValueTable({0: left})})
    for sign, value in (("div", left // right), ("mod", left % right)):
        constraint = worlds.constraint(f"size(0) {sign} {right} = {value}")
        assert solver.solve(smt.query(constraint, worlds.functions(), structure), 10).verdict == "holds"


@pytest.mark.parametrize(
    ("body", "premises"),
    [
        (TRUE, ["true"]),
        ("a", ["a"]),
        (Term("or", ("a", Term("or", ("b", "c")))), ["a", "b", "c"]),
        (Term("and", ("a", Term("or", ("b", "c")))), ["(and a b)", "(and a c)"]),
        (
            Term("and", (Term("or", ("a", "b")), Term("or", ("c", "d")))),
            ["(and (or a b) (or c d))"],
        ),
    ],
)
def test_the_body_of_a_clause_is_split_where_that_does_not_multiply_it(body: Any, premises: list[str]) -> None:
    assert [smtlib.spell(part) for part in smtlib.alternatives(body)] == premises


# ---- Answers ----------------------------------------------------------------------------------


def test_a_violation_needs_one_question_where_everything_is_known() -> None:
    answer = solver.solve(world("size(0) = 11"), 10)
    assert (answer.verdict, answer.answers, answer.core) == ("violated", ("sat",), ())


def test_a_violation_whatever_the_unknown_fact_needs_two_questions() -> None:
    answer = solver.solve(world("good(2) and size(0) = 11"), 10)
    assert (answer.verdict, answer.negation, answer.formula) == ("violated", "sat", "unsat")


def test_an_open_question_is_unknown() -> None:
    answer = solver.solve(world("good(2)"), 10)
    assert (answer.verdict, answer.negation, answer.formula) == ("unknown", "sat", "sat")


def test_an_inductive_predicate_that_no_unknown_fact_can_save_is_violated() -> None:
    tables = {"next": SetTable({2: (3,)})}
    answer = solver.solve(world("maybe(1)", **tables), 10)
    assert (answer.verdict, answer.answers) == ("violated", ("sat",))
    answer = solver.solve(world("maybe(3) and maybe(1)", **tables), 10)
    assert (answer.verdict, answer.negation, answer.optimistic) == ("violated", "sat", "sat")
    answer = solver.solve(world("maybe(3)", **tables), 10)
    assert (answer.verdict, answer.negation, answer.optimistic) == ("unknown", "sat", "unsat")


def pigeons(holes: int) -> smt.Query:
    """Unknown Bools that say which of too many pigeons sits in which hole: hard to refute."""
    count = holes + 1
    whole = SetTable({(): tuple(range(count))})
    sits = {(n, m): Unknown("?") for n in range(count) for m in range(holes)}
    functions = worlds.functions('fact sits(n: Node, m: Node): Bool "Unknown." fact holes(): set Node "All but one."')
    structure = worlds.structure(
        {"whole": whole, "sits": ValueTable(sits), "holes": SetTable({(): tuple(range(holes))})}
    )
    formula = """not ((forall n in whole(): exists m in holes(): sits(n, m))
      and forall m in holes(), n in whole(), k in whole(): n != k implies not (sits(n, m) and sits(k, m)))"""
    return smt.query(worlds.constraint(formula), functions, structure)


def test_pigeons_do_not_fit() -> None:
    assert solver.solve(pigeons(4), 10).verdict == "holds"


def test_a_question_that_takes_too_long_is_answered_unknown() -> None:
    start = time.monotonic()
    answer = solver.solve(pigeons(13), 0.3)
    assert (answer.verdict, answer.negation) == ("unknown", "unknown")
    assert "the solver gave up" in answer.reason
    assert time.monotonic() - start < 5


def test_an_answer_is_remembered_by_all_that_it_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(solver, "_answers", {})
    real = solver._told
    monkeypatch.setattr(solver, "_told", lambda pieces: told.extend(pieces) or real(pieces))
    query, other = world("size(0) = 10"), world("size(0) = 11")
    for again in range(2):
        answers = [
            solver.ask(query, negated=True, timeout=10),
            solver.ask(query, negated=False, timeout=10),
            solver.ask(query, negated=True, timeout=10, seed=1),
            solver.ask(query, negated=True, timeout=11),
            solver.ask(replace(query, name="D", resolved=frozenset({"next"})), negated=True, timeout=10),
            solver.ask(other, negated=True, timeout=10),
        ]
        assert answers == [
            ("unsat", ("size",), ""), ("sat", (), ""), *[("unsat", ("size",), "")] * 2,
            ("unsat", ("next", "size"), ""), ("sat", (), ""),
        ]  # fmt: skip
        assert len(told) == len(set(told)) == 5, again


def test_what_a_clock_decided_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "_answers", {})
    monkeypatch.setattr(solver, "SHORT", 10**9)
    assert solver.ask(pigeons(13), negated=True, timeout=0.1)[0] == "unknown"
    assert not solver._answers


# ---- Without names ----------------------------------------------------------------------------

Tree = str | tuple["Tree", ...]


def parsed(script: str) -> Iterator[Tree]:
    """The commands of a script."""
    open_lists: list[list[Tree]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", re.sub(r";.*", "", script)):
        if token == "(":
            open_lists.append([])
            continue
        made: Tree = tuple(open_lists.pop()) if token == ")" else token
        if len(open_lists) > 1 or token != ")":
            open_lists[-1].append(made)
        else:
            yield made


def put_in(tree: Tree, known: dict[str, Tree]) -> Tree:
    """The values in place of the symbols; what is said twice in a conjunction, disjunction or choice is said once."""
    if isinstance(tree, str):
        return known.get(tree, tree)
    if tree[:1] == ("let",):
        return put_in(tree[2], {name: put_in(value, known) for name, value in tree[1]})
    parts = [put_in(part, known) for part in tree]
    if parts[:1] in (["not"],) and isinstance(parts[1], tuple) and parts[1][:1] == ("not",):
        return parts[1][1]
    if parts[:1] == ["ite"] and isinstance(parts[2], tuple) and parts[2][:2] == ("ite", parts[1]):
        return parts[2]
    if parts[:1] in (["and"], ["or"]):
        flat = [it[1:] if isinstance(it, tuple) and it[0] == parts[0] else (it,) for it in parts]
        parts = list(dict.fromkeys(chain(*flat)))
        return tuple(parts) if len(parts) > 2 else parts[1]
    return tuple(parts)


def asserted(query: smt.Query) -> list[Tree]:
    """What a script asserts and asks, its definitions put in."""
    known: dict[str, Tree] = {}
    kept: list[Tree] = []
    for command in parsed(text(query)):
        if command[0] == "define-fun":
            known[command[1]] = put_in(command[4], {})
        elif command[0] in ("set-logic", "declare-const", "assert", "check-sat-assuming"):
            kept.append(put_in(command, known))
    return kept


@table("name", NEEDED)
def test_without_names_a_rule_says_the_same(name: str) -> None:
    """Symbol by symbol, but for what instances say alike; so do all forms of expressions."""
    for graph in (GOOD, EXEMPT):
        found, facts = specification(), small.structure(graph)
        named = smt.query(found.constraints[name], found.functions, facts, named=True)
        plain = smt.query(found.constraints[name], found.functions, facts)
        assert asserted(plain) == asserted(named)
        assert not plain.facts
        assert (plain.fixed(), plain.assumed) == (named.fixed(), named.assumed)


@pytest.mark.parametrize("formulas", [worlds.HOLD, worlds.UNKNOWN], ids=["hold", "unknown"])
def test_without_names_every_form_of_expression_says_the_same(formulas: Sequence[str]) -> None:
    for formula in formulas:
        plain = smt.query(worlds.constraint(formula), worlds.functions(), worlds.structure())
        assert asserted(plain) == asserted(world(formula)), formula
        assert solver.solve(plain, 10).core == solver.solve(world(formula), 10).core, formula


def test_a_refused_text_is_a_defect() -> None:
    query = world("true")
    broken = type(query)(**{f: getattr(query, f) for f in query.__slots__} | {"formula": "undeclared"})
    with pytest.raises(InternalError, match=r"refuses its input.*undeclared"):
        solver.solve(broken, 10)


def test_a_division_by_zero_never_reaches_the_text() -> None:
    with pytest.raises(InternalError, match="divisor"):
        smtlib.spell(Term("div", ("a", 0)))


# ---- A second solver --------------------------------------------------------------------------


def second_opinion(path: Path) -> str:
    """What cvc5 says to a dumped query."""
    cvc5 = pytest.importorskip("cvc5", reason="cvc5 is not installed: pip install sonnx[cvc5]")
    instance = cvc5.Solver()
    parser = cvc5.InputParser(instance)
    parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, str(path))
    symbols = parser.getSymbolManager()
    said = []
    while not (command := parser.nextCommand()).isNull():
        said.append(str(command.invoke(instance, symbols)).strip())
    return next(line for line in said if line)


@pytest.mark.parametrize("name", NEEDED)
def test_cvc5_decides_the_dumped_queries_alike(name: str, tmp_path: Path) -> None:
    bad = small.SmallGraph(5, ((0, 4), (2, 3)), ((2, 2, 1), (3,)), (0, 1, 4), (), (1,), (0,))
    for graph in (GOOD, bad):
        query = asked(name, graph)
        assert second_opinion(solver.dump(query, tmp_path)) == solver.solve(query, 10).negation


@pytest.mark.parametrize("verdict", ["holds", "unknown"])
def test_cvc5_decides_every_form_of_expression_alike(verdict: str, tmp_path: Path) -> None:
    formulas = worlds.HOLD if verdict == "holds" else worlds.UNKNOWN
    answers = {formula: second_opinion(solver.dump(world(formula), tmp_path)) for formula in formulas}
    assert set(answers.values()) == {"unsat" if verdict == "holds" else "sat"}


def test_the_second_question_is_dumped_where_a_fact_is_unknown(tmp_path: Path) -> None:
    solver.dump(world("good(2)"), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["C.formula.smt2", "C.smt2"]
    assert second_opinion(tmp_path / "C.formula.smt2") == "sat"


def test_structures_are_left_unchanged() -> None:
    structure: Structure = small.structure(GOOD)
    before = {fact: dict(structure.table(fact).rows) for fact in structure.facts()}
    solver.solve(smt.query(specification().constraints["Completeness"], specification().functions, structure), 10)
    assert {fact: dict(structure.table(fact).rows) for fact in structure.facts()} == before


def test_a_limit_of_the_effort_limits_no_other_question() -> None:
    session, other = solver.Session(), solver.Session()
    asked = "".join(f"(declare-const x{i} Int)(assert (< 0 x{i} 100))" for i in range(40)) + "(assert (= (* x0 x1) 91))"
    assert session.check(asked, 10, effort=1).status == "unknown"
    assert other.check(asked, 10).status == "sat"


def test_how_quantifiers_are_read_and_the_seed_reach_no_other_question() -> None:
    """z3 keeps options for the whole process: this one is proved by matching alone, at once, with seed 0."""
    asked = "(declare-fun f (Int) Int)(assert (forall ((x Int)) (! (= (f x) (+ x 1)) :pattern ((f x)))))" \
        "(assert (not (= (f (f 1)) 3)))"  # fmt: skip
    told = "(get-option :smt.ematching)(get-option :auto_config)(get-option :smt.random_seed)"
    session = solver.Session()
    assert session.check("(declare-const a Bool)(assert a)", 10, seed=7, finite=True).status == "sat"
    assert solver._tell(session._context, told).split() == ["false", "false", "7"]
    other = solver.Session()
    assert other.check(asked, 10).status == "unsat"
    assert solver._tell(other._context, told).split() == ["true", "true", "0"]


def test_the_same_text_is_asked_again_under_another_assumption() -> None:
    session = solver.Session()
    text = "(declare-const a Bool)(declare-const b Bool)(declare-const c Bool)(assert (=> a (not b)))(assert b)"
    assert session.check(text, 10, under="a").status == "unsat"
    assert session.again(under="c").status == "sat"
    assert session.again(("b",)).values == ("true",)


def test_the_keys_that_interrupt_end_the_run_and_not_only_the_question() -> None:
    """The solver takes the signal for itself while it works."""
    cubes = "(declare-fun x () Int)(declare-fun y () Int)(declare-fun z () Int)"
    hard = f"{cubes}(assert (= (+ (* x x x) (* y y y) (* z z z)) 42))(assert (> x 100))"
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        solver.Session().check(hard, 20)
    timer.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system forks no processes")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_is_forked_while_another_thread_asks_can_ask() -> None:
    asking, question = threading.Event(), asked("Acyclic")

    def ask() -> None:
        with solver._context():
            asking.set()
            time.sleep(0.2)

    thread = threading.Thread(target=ask)
    thread.start()
    asking.wait()
    child = os.fork()
    if not child:
        signal.alarm(10)
        os._exit(0 if solver.solve(question, 5).answers == ("unsat",) else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
