"""A small made-up world for tests of the language: facts with every kind of value, known, unknown and undefined.

Tests load this file by its path.
"""

from __future__ import annotations

from collections.abc import Mapping

from sonnx.semantics.facts.structure import SetTable, Structure, Table, Unknown, ValueTable
from sonnx.spec.language.parse import parse
from sonnx.spec.language.syntax import Constraint, FunctionDeclaration

DECLARATIONS = """
sort Node "A node."
fun len(s: set Any): Int "The number of entries."
fun absolute(i: Int): Int "No interpretation of formulas knows it."
fact whole() : set Node "0 to 3."
fact one() : set Node "Only 2."
fact none() : set Node "Empty."
fact next(n: Node) : set Node "n + 1, up to 3."
fact many(n: Node) : set Node "All, for 0; none for the others."
fact back(n: Node) : Node "n - 1; undefined for 0."
fact far(n: Node) : Node "Unknown for 3, else n."
fact size(n: Node) : Int "Undefined for 3, unknown for 2, 10 for 0, -7 for 1."
fact named(n: Node) : Text "a, b, Unknown, undefined."
fact good(n: Node) : Bool "True, false, unknown, undefined."
fact list_of(n: Node) : list Int "[], [4, 5], unknown, undefined."
fact words(n: Node) : set Text "x and y for 0, none else."
define yes(n: Node) : Bool "n is 0 or 1." = n in whole() and size(n) < 11
define twice(i: Int) : Int "2 i." = i + i
define kind(n: Node) : Bool "By the name." = case named(n) { "a", "c": true; "b": false; else: false }
inductive reached(n: Node) "From 2 on." if n in one() or exists m in whole(): n in next(m) and reached(m)
inductive maybe(n: Node) "From what is good." if good(n) or exists m in whole(): n in next(m) and maybe(m)
inductive even(n: Node) "Mutual."
  if (forall m in none(): true) and (n in one() or exists m in whole(): n in next(m) and odd(m))
inductive odd(n: Node) "Mutual." if exists m in whole(): n in next(m) and even(m)
"""

TABLES: Mapping[str, Table] = {
    "whole": SetTable({(): (0, 1, 2, 3)}),
    "one": SetTable({(): (2,)}),
    "none": SetTable({}),
    "next": SetTable({0: (1,), 1: (2,), 2: (3,)}),
    "many": SetTable({0: (0, 1, 2, 3)}),
    "back": ValueTable({1: 0, 2: 1, 3: 2}),
    "far": ValueTable({0: 0, 1: 1, 2: 2, 3: Unknown("far is not told")}),
    "size": ValueTable({0: 10, 1: -7, 2: Unknown("size is not told")}),
    "named": ValueTable({0: "a", 1: "b", 2: Unknown("the name is not told")}),
    "good": ValueTable({0: True, 1: False, 2: Unknown("good is not told")}),
    "list_of": ValueTable({0: (), 1: (4, 5), 2: Unknown("the list is not told")}),
    "words": SetTable({0: ("x", "y z<")}),
}


def functions(extra: str = "") -> dict[str, FunctionDeclaration]:
    """The function symbols of the world, and further ones."""
    declarations = parse(DECLARATIONS + extra, "world").declarations
    return {d.name: d for d in declarations if isinstance(d, FunctionDeclaration)}


def structure(overrides: Mapping[str, Table] | None = None) -> Structure:
    """The facts, some of them replaced."""
    tables = {**TABLES, **(overrides or {})}
    return Structure({name: (lambda t=table: t) for name, table in tables.items()}, lambda sort, x: f"{sort} {x}")


def constraint(formula: str) -> Constraint:
    """A constraint with this formula."""
    (found,) = parse(f'constraint C "A claim." at static: {formula}', "claim").declarations
    if not isinstance(found, Constraint):
        raise TypeError(found)
    return found


HOLD = (
    "true",
    "not false",
    "true or good(2)",
    "good(2) or good(0)",
    "not (good(1) and good(2))",
    "good(1) implies good(3)",
    "good(2) implies good(0)",
    "good(0) iff not good(1)",
    "size(0) = 10 and size(1) = 0 - 7 and size(1) < size(0) and 1 < 2 <= 2 and size(0) >= 10 > size(1)",
    "size(1) div 2 = -4 and size(1) mod 2 = 1 and size(1) mod -4 = -3 and size(1) div -2 = 3 and 7 mod -2 = -1",
    "size(0) * size(1) = -70 and size(0) - size(1) = 17 and -size(1) = 7 and twice(size(0)) = 20",
    'named(0) = "a" and named(0) != named(1) and named(0) in ["x", "a"] and named(1) not in ["x", "a"]',
    'named(0) in ["1", "2", "3", "4", "5", "a"] and named(1) not in ["1", "2", "3", "4", "5", "a"]',
    "kind(0) and not kind(1)",
    "size(0) in [10, 11] and 3 in [1, 2, 3] and 4 not in [1, 2, 3]",
    'words(0) = {w for w in words(0)} and "x" in words(0) and "x" not in words(1) and len(words(0)) = 2',
    "forall n in none(): false",
    "forall n in whole(): n in whole()",
    "exists n in whole(): n in one()",
    "unique n in whole(): n in one()",
    "unique n in whole(), m in next(n): m = 2",
    "not (unique n in whole(): n != 0) and not (unique n in none(): true)",
    "unique n in many(0): n = 3",
    "exists n in whole(): 3 in next(n) and n = 2",
    "forall n in whole(): 3 in next(n) implies n = 2",
    "forall n in whole(), m in next(n): n in many(0) and back(m) = n",
    "len(whole()) = 4 and len(next(3)) = 0 and len(list_of(1)) = 2 and len(list_of(0)) = 0 and len([1, 2]) = 2",
    "list_of(1)[1] = 5 and list_of(1) = [4, 5] and list_of(1) != [4] and list_of(1) != [4, 6] and list_of(0) = []",
    "4 in list_of(1) and 6 not in list_of(1) and forall i in list_of(1): i > 3",
    "[i * i for i < 3] = [0, 1, 4] and [i for i < size(0) if i > 7] = [8, 9]",
    "{back(n) for n in whole() if n != 0} = {m for m in whole() if next(m) != none()}",
    "{n for n in whole(), m in next(n)} != whole() and 3 not in {n for n in whole(), m in next(n)}",
    "len({back(n) for n in whole() if n in next(back(n)) and n != 0}) = 3",
    "len({n for n in whole() if n in one() or n = 0}) = 2",
    "if good(0) then good(0) else good(1)",
    '(if good(1) then 1 else 2) = 2 and (case named(0) { "a": 5; else: 6 }) = 5',
    "if size(0) = 10 then true else good(2)",
    "reached(2) and reached(3) and even(2) and odd(3)",
    "forall n in whole(): n in one() implies reached(n)",
    "maybe(0) and maybe(1) and maybe(3)",
    "yes(0) and yes(1)",
    "next(back(2)) = {2 for n in one()} and back(back(2)) = 0 and far(1) = 1",
)

UNKNOWN = (
    "good(2)",
    "good(3)",
    "good(2) and good(0)",
    "good(2) or good(1)",
    "size(2) = 10",
    "size(3) = 10",
    "size(2) + 1 < 5",
    "size(2) * size(2) = 4",
    "size(2) div 2 = 1",
    "7 div size(2) = 1",
    "7 div (size(0) - 10) = 1",
    'named(2) = "a"',
    'named(3) in ["a", "b"]',
    "kind(2)",
    "list_of(2) = [1]",
    "list_of(1)[2] = 5",
    "list_of(2)[0] = 5",
    "len(list_of(2)) = 0",
    "1 in list_of(2)",
    "size(far(3)) = 10",
    "far(3) = 3",
    "far(3) in one()",
    "exists n in next(far(3)): true",
    "forall n in next(far(3)): false",
    "unique n in next(far(3)): true",
    "forall n in whole(): good(n) or n = 1 or n = 3",
    "if good(2) then size(0) = 10 else size(0) = 11",
    "len(next(far(3))) = 1",
    "next(far(3)) = whole()",
)
