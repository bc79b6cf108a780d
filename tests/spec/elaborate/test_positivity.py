"""Which clauses of inductive predicates are accepted."""

from __future__ import annotations

from sonnx.spec.elaborate.declarations import elaborate
from sonnx.spec.language.parse import parse
from tables import table

PRELUDE = """
sort Node "A node."
fact nodes(): set Node "The nodes."
fact next(n: Node): set Node "The nodes after n."
fact marked(n: Node): Bool "A mark."
define both(n: Node, m: Node): Bool "A definition." = a(n) and a(m)
define other(n: Node): Bool "Through two definitions." = both(n, n) or marked(n)
define neither(n: Node): Bool "Not positive." = not other(n)
inductive b(n: Node) "Another predicate, mutually dependent." if a(n) or marked(n)
"""

POSITIVE = [
    "marked(n)",
    "not marked(n)",
    "a(n)",
    "b(n) and marked(n)",
    "forall m in next(n): a(m)",
    "exists m in next(n): a(m) or b(m)",
    "marked(n) implies a(n)",
    "not marked(n) implies a(n)",
    "if marked(n) then a(n) else b(n)",
    'case "x" { "x": a(n); else: marked(n) }',
    "other(n)",
    "forall m in next(n): both(n, m)",
    "(exists m in next(n): not marked(m)) and a(n)",
    "any(i < 3) a(n) and (all(j < 3 if marked(n)) b(n))",
]
NEGATIVE = [
    "not a(n)",
    "not (not a(n))",
    "a(n) implies marked(n)",
    "a(n) iff marked(n)",
    "unique m in next(n): a(m)",
    "if a(n) then marked(n) else true",
    "a(n) = true",
    "marked(n) and not b(n)",
    "not other(n)",
    "neither(n)",
    "forall m in next(n): not both(n, m)",
    "exists m in {k for k in next(n) if a(k)}: marked(m)",
    "count(i < 3) a(n) = 1",
    "all(i < 3 if a(n)) marked(n)",
    'case if a(n) then "x" else "y" { "x": true; else: false }',
]


def kinds(clause: str) -> set[str]:
    text = PRELUDE + f'inductive a(n: Node) "The predicate." if {clause}\n'
    found = {error.kind for error in elaborate([parse(text, "t")]).errors}
    return found - {"name/unused"}


@table("clause", POSITIVE)
def test_a_positive_clause_is_accepted(clause: str) -> None:
    assert kinds(clause) == set()


@table("clause", NEGATIVE)
def test_a_clause_that_is_not_positive_is_refused(clause: str) -> None:
    assert kinds(clause) & {"inductive/negative", "inductive/define"}


def test_constraints_and_definitions_may_negate_inductive_predicates() -> None:
    text = PRELUDE + 'inductive a(n: Node) "The predicate." if marked(n)\n'
    text += 'constraint C "None is." at static: forall n in nodes(): not a(n)\n'
    text += '  violation "v" suggest "s" evidence places\n'
    assert elaborate([parse(text, "t")]).errors == ()
