"""The direct evaluator: three-valued truth, instances, indexes instead of products, fixpoints without recursion."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import worlds
from sonnx.semantics.errors import InternalError
from sonnx.semantics.facts.structure import SetTable, Structure, Unknown, ValueTable
from sonnx.semantics.formulas import evaluate as direct
from sonnx.spec.elaborate.formulas import Cores, cores
from sonnx.spec.language.errors import SpecError
from sonnx.spec.language.parse import parse
from sonnx.spec.language.syntax import Constraint, Expr, FunctionDeclaration
from tables import table


def judged(formula: str, **options: Any) -> direct.Judgement:
    return direct.judge(worlds.constraint(formula), worlds.functions(), worlds.structure(), **options)


def test_what_facts_determine_is_decided() -> None:
    wrong = {f: v for f in worlds.HOLD if (v := judged(f).verdict) != "holds"}
    assert wrong == {}


def test_the_negation_of_what_holds_is_violated() -> None:
    wrong = {f: v for f in worlds.HOLD if (v := judged(f"not ({f})").verdict) != "violated"}
    assert wrong == {}


@pytest.mark.parametrize("form", ["{}", "not ({})"])
def test_what_facts_leave_open_is_unknown(form: str) -> None:
    wrong = {f: v for f in worlds.UNKNOWN if (v := judged(form.format(f)).verdict) != "unknown"}
    assert wrong == {}


def test_the_reason_of_an_unknown_value_is_told() -> None:
    judgement = judged("forall n in whole(): n = 3 or size(n) < 11")
    assert [instance.reason for instance in judgement.unknowns] == ["size is not told"]


def test_an_undefined_value_names_the_fact_and_its_arguments() -> None:
    (instance,) = judged("size(3) = 1").unknowns
    assert instance.reason == "size(Node 3) is undefined"


def test_a_guard_keeps_an_undefined_value_away() -> None:
    assert judged("forall n in whole(): n = 2 or (n != 3 implies size(n) < 11)").verdict == "holds"


def test_instances_are_those_of_the_outermost_universal_quantifiers() -> None:
    judgement = judged("forall n in whole(), m in next(n): forall k in next(m): k = 2")
    assert judgement.verdict == "violated"
    (failure,) = judgement.failures
    assert [(name, sort.name, element) for name, sort, element in failure.bindings] == [
        ("n", "Node", 1),
        ("m", "Node", 2),
        ("k", "Node", 3),
    ]


def test_instances_are_cut_at_the_limit_and_counted_in_full() -> None:
    judgement = judged("forall n in whole(), m in whole(): n = m", limit=3)
    assert (len(judgement.failures), judgement.failed, judgement.undecided) == (3, 12, 0)


def test_a_formula_without_quantifier_is_one_instance() -> None:
    assert judged("1 = 2").failures == (direct.Instance(()),)


def test_an_unknown_domain_leaves_its_variable_unbound() -> None:
    judgement = judged("forall n in whole(), m in next(far(n)): false")
    assert judgement.failed == 3
    assert [instance.bindings[0][2] for instance in judgement.unknowns] == [3]
    assert [len(instance.bindings) for instance in judgement.unknowns] == [1]


def expression(text: str) -> Expr:
    (found,) = parse(f'constraint C "x" at static: {text} = 0', "t").declarations
    assert isinstance(found, Constraint)
    inner = found.formula.args[0]
    assert isinstance(inner, Expr)
    return inner


@table(
    ("text", "value"),
    [
        ("next(n)", (2,)),
        ("len(whole())", 4),
        ("size(0)", 10),
        ("size(3)", Unknown("size(Node 3) is undefined")),
        ("{back(m) for m in whole() if m != 0}", (0, 1, 2)),
        ("list_of(n)", (4, 5)),
    ],
)
def test_evaluate_gives_the_value_of_an_expression(text: str, value: object) -> None:
    assert direct.evaluate(expression(text), {"n": 1}, worlds.functions(), worlds.structure()) == value


# ---- Indexes ----------------------------------------------------------------------------------


class Counting(Mapping[Any, Any]):
    """Rows that count how often one is asked for."""

    def __init__(self, rows: dict[Any, Any]) -> None:
        self.rows, self.asked = rows, 0

    def __getitem__(self, key: Any) -> Any:
        self.asked += 1
        return self.rows[key]

    def get(self, key: Any, default: Any = None) -> Any:
        self.asked += 1
        return self.rows.get(key, default)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


SIZE = 400


@table(
    ("formula", "verdict"),
    [
        ("forall n in whole(): n = 0 or exists m in whole(): n in next(m) and good(m)", "holds"),
        ("forall n in whole(): forall m in whole(): n in next(m) implies good(m)", "holds"),
        ("forall n in whole(), m in whole(): n in next(m) and good(m) implies good(m)", "holds"),
        ("forall n in whole(), m in whole(), k in next(m): n in next(m) implies good(m) and k = n", "holds"),
        ("forall n in whole(): n = 0 or exists m in whole(), k in next(m): n in next(m) and good(k)", "holds"),
        ("forall n in whole(): n = 0 or unique m in whole(): n in next(m) and good(m)", "holds"),
        ("forall n in whole(): n = 0 or exists m in whole(): good(m) and (m != n and n in next(m))", "holds"),
        ("forall n in whole(): exists m in whole(): n in next(m) and good(m)", "violated"),
    ],
)
def test_a_relation_is_run_through_its_index(formula: str, verdict: str) -> None:
    good = Counting(dict.fromkeys(range(SIZE), True))
    rows = Counting({n: (n + 1,) for n in range(SIZE - 1)})
    structure = worlds.structure(
        {
            "whole": SetTable({(): tuple(range(SIZE))}),
            "next": SetTable(rows),
            "good": ValueTable(good),
        }
    )
    assert direct.judge(worlds.constraint(formula), worlds.functions(), structure).verdict == verdict
    assert SIZE / 2 < good.asked <= 3 * SIZE
    assert rows.asked <= 6 * SIZE


@pytest.mark.parametrize(
    "formula",
    [
        "forall n in whole(): exists m in whole(): n in next(m) or good(m)",
        "forall n in whole(): forall m in whole(): good(m) implies good(m)",
        "forall n in whole(): exists m in whole(): exists n in whole(): n in next(m) and good(m)",
    ],
)
def test_an_index_is_used_only_where_it_decides(formula: str) -> None:
    """A disjunct restricts nothing, and an inner variable of the same name is another variable."""
    structure = worlds.structure({"good": ValueTable(dict.fromkeys(range(4), True))})
    assert direct.judge(worlds.constraint(formula), worlds.functions(), structure).verdict == "holds"


# ---- Least fixpoints --------------------------------------------------------------------------


def chain(length: int) -> Any:
    """Numbered against the direction of derivation, so that no luck with the order helps."""
    return worlds.structure(
        {
            "whole": SetTable({(): tuple(range(length))}),
            "one": SetTable({(): (length - 1,)}),
            "next": SetTable({n: (n - 1,) for n in range(1, length)}),
        }
    )


def test_a_chain_of_100000_is_derived_without_recursion() -> None:
    length = 100_000
    order = direct.fixpoint("reached", worlds.functions(), chain(length))
    assert [*order] == [*range(length - 1, -1, -1)]
    assert sorted(order.values()) == [*order.values()]


def test_every_instance_is_derived_after_what_it_rests_on() -> None:
    even = direct.fixpoint("even", worlds.functions(), structure := chain(50))
    odd = direct.fixpoint("odd", worlds.functions(), structure)
    assert set(even) == set(range(1, 50, 2))
    assert set(odd) == set(range(0, 50, 2))
    assert all(odd[n - 1] > even[n] for n in even)
    assert all(even[n - 1] > odd[n] for n in odd if n)


def test_a_cycle_supports_nothing() -> None:
    structure = worlds.structure({"next": SetTable({0: (1,), 1: (0,), 2: (3,)})})
    assert set(direct.fixpoint("reached", worlds.functions(), structure)) == {2, 3}
    assert direct.judge(worlds.constraint("not reached(0)"), worlds.functions(), structure).verdict == "holds"


def test_an_unknown_fact_leaves_open_exactly_what_hangs_on_it() -> None:
    """good(0) derives 0 and 1, good(2) is unknown; 2 and 3 are derived through next anyway unless that is cut."""
    structure = worlds.structure({"next": SetTable({2: (3,)}), "good": worlds.TABLES["good"]})
    verdicts = [direct.judge(worlds.constraint(f"maybe({n})"), worlds.functions(), structure).verdict for n in range(4)]
    assert verdicts == ["holds", "violated", "unknown", "unknown"]
    assert set(direct.fixpoint("maybe", worlds.functions(), structure)) == {0}


def test_a_false_instance_beside_an_unknown_one_is_false() -> None:
    structure = worlds.structure({"next": SetTable({}), "good": ValueTable({0: False, 1: Unknown("?")})})
    formula = worlds.constraint("not maybe(0)")
    assert direct.judge(formula, worlds.functions(), structure).verdict == "holds"


def test_a_hub_is_not_evaluated_after_each_of_its_premises() -> None:
    """A node that needs all others of a chain waits until they are done."""
    length = 2_000
    text = """
    inductive all_before(n: Node) "All, for the hub 0; a chain otherwise."
      if if n in one() then good(n) else (forall m in many(n): all_before(m))
    """
    good = Counting({length: True})
    many = Counting({n: (n + 1,) for n in range(1, length)} | {0: tuple(range(length - 1, 0, -1))})
    structure = worlds.structure(
        {
            "whole": SetTable({(): tuple(range(length + 1))}),
            "one": SetTable({(): (length,)}),
            "many": SetTable(many),
            "good": ValueTable(good),
        }
    )
    order = direct.fixpoint("all_before", worlds.functions(text), structure)
    assert len(order) == length + 1
    assert order[0] == length
    assert many.asked <= 2 * length + 50


# ---- What was compiled is kept ------------------------------------------------------------------

KEPT = (
    "forall n in whole(): n in many(0) and (good(n) or words(n) = words(9)) implies (exists m in whole(): reached(m))"
)
OTHER = {
    "whole": SetTable({(): (0, 1, *range(4, 20))}),
    "one": SetTable({}),
    "many": SetTable({0: tuple(range(20))}),
    "good": ValueTable({n: n > 3 for n in range(20)}),
}


def test_one_compiled_formula_serves_each_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts, rows that are hashed, and the derived instances are those of the structure that is judged."""
    constraint, functions = worlds.constraint(KEPT), worlds.functions()
    first = direct.judge(constraint, functions, worlds.structure())
    monkeypatch.delattr(direct, "compiled")
    other = direct.judge(constraint, functions, worlds.structure(OTHER))
    assert (first.verdict, other.verdict, other.failed) == ("holds", "violated", 17)
    assert direct.judge(constraint, functions, worlds.structure()) == first


def test_an_undefined_value_is_named_by_its_own_structure() -> None:
    constraint, functions = worlds.constraint("size(3) = 1"), worlds.functions()
    for name in "here", "there":
        structure = Structure({"size": lambda: worlds.TABLES["size"]}, lambda _sort, _x, name=name: name)
        (instance,) = direct.judge(constraint, functions, structure).unknowns
        assert instance.reason == f"size({name}) is undefined"


def test_tables_of_another_kind_are_another_formula() -> None:
    constraint, functions = worlds.constraint("len(next(3)) = 0 and 1 not in next(3)"), worlds.functions()
    undefined = {"next": ValueTable({})}
    made = [worlds.structure(it) for it in (None, undefined, None)]
    assert [direct.judge(constraint, functions, it).verdict for it in made] == ["holds", "unknown", "holds"]


class Text(dict[str, FunctionDeclaration]):
    """Functions that have their cores with them, as those of the specification do."""

    cores: Cores


@table(
    ("formula", "declared", "verdicts"),
    [
        ("own(2)", 'define own(n: Node): Bool "." = n {} 1', ["violated", "holds"]),
        ("own(3)", 'inductive own(n: Node) "." if n {} 3', ["holds", "violated"]),
        (
            "own(1)",
            'define own(n: Node): Bool "." = ind(n) inductive ind(n: Node) "." if n {} 1',
            ["holds", "violated"],
        ),
    ],
)
def test_the_same_names_in_another_text_are_another_formula(formula: str, declared: str, verdicts: list[str]) -> None:
    """Also where both texts have the very same core of the constraint."""
    constraint, structure = worlds.constraint(formula), worlds.structure()
    texts = [Text(worlds.functions(declared.format(sign))) for sign in ("=", "!=")]
    core = cores(texts[0]).constraint(constraint)
    for text in texts:
        text.cores = Cores(text, lambda it: core if it is constraint else None)
    for _ in range(2):
        assert [direct.judge(constraint, text, structure).verdict for text in texts] == verdicts


@pytest.mark.parametrize("first", ["judge", "evaluate"])
def test_a_formula_is_a_value_and_has_instances(first: str) -> None:
    constraint, functions, structure = (
        worlds.constraint("forall n in whole(): n in [0, 1]"),
        worlds.functions(),
        worlds.structure(),
    )
    for asked in (first, "judge", "evaluate"):
        if asked == "judge":
            assert direct.judge(constraint, functions, structure).failed == 2
        else:
            assert direct.evaluate(constraint.formula, {}, functions, structure) is False


def test_what_is_kept_holds_no_structure() -> None:
    functions, structure = worlds.functions(), worlds.structure(OTHER)
    assert direct.judge(worlds.constraint(KEPT), functions, structure).failed == 17
    assert cores(functions).derived
    gone = weakref.ref(structure)
    del structure
    gc.collect()
    assert gone() is None


# ---- Defects ----------------------------------------------------------------------------------


@table(
    ("formula", "message"),
    [
        ("nothing(1)", "no function is named nothing"),
        ("absolute(1) = 1", "no meaning to the function absolute"),
        ("x", "x is not bound here"),
        ("named(0) < named(1)", "compares numbers"),
        ("sum(i < 3) i = 3", "no meaning to 'fold'"),
        ("loop(1)", "the definition of loop is recursive"),
        ("forall n in 3: true", "a variable ranges over a set or a list"),
    ],
)
def test_what_constraints_may_not_contain_is_refused(formula: str, message: str) -> None:
    functions = worlds.functions('define loop(i: Int): Bool "Itself." = loop(i)')
    with pytest.raises((InternalError, SpecError), match=message):
        direct.judge(worlds.constraint(formula), functions, worlds.structure())
