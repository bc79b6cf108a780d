"""The document interpretation: every declaration has a text and a Markdown form; hostile text stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonnx.spec.language.parse import parse, parse_expression
from sonnx.spec.language.syntax import HEADS, Constraint, Declaration, Expr, FunctionDeclaration, Profile
from sonnx.spec.library import specification
from sonnx.spec.render.cards import Formula, card
from sonnx.spec.render.markdown import formula_lines, inline, markdown, markdown_page
from sonnx.spec.render.math import WIDTH, broken, formula_text
from sonnx.spec.render.notation import NOTATIONS
from tables import table


def expression(text: str) -> Expr:
    return parse_expression(text)


def lines_of(formula: Expr) -> list[str]:
    return formula_lines(Formula(broken(formula)))


def page_of(declaration: Declaration) -> str:
    return markdown_page("t", [card(declaration)])


def test_every_head_of_the_language_has_a_notation() -> None:
    assert NOTATIONS.keys() == HEADS


@table(
    ("text", "shown"),
    [
        ("forall t in inputs(main()): used(t)", "∀ t ∈ inputs(main()): used(t)"),
        ("exists n in consumers(t): true", "∃ n ∈ consumers(t)"),
        ("forall n in consumers(t): false", "∀ n ∈ consumers(t): false"),
        ("unique p in writes(t): writer(p) = n", "∃! p ∈ writes(t): writer(p) = n"),
        ("not (t in S)", "t ∉ S"),
        ("not (a = b)", "a ≠ b"),
        ("not (a <= b)", "¬(a ≤ b)"),
        ("not (a = b = c)", "¬(a = b = c)"),
        ("not f(x)", "¬f(x)"),
        ("not (a and b)", "¬(a ∧ b)"),
        ("a and b or c", "(a ∧ b) ∨ c"),
        ("a and (b or c)", "a ∧ (b ∨ c)"),
        ("a implies (b implies c)", "a ⇒ b ⇒ c"),
        ("(a implies b) implies c", "(a ⇒ b) ⇒ c"),
        ("a iff b", "a ⇔ b"),
        ("0 <= i < n", "0 ≤ i < n"),
        ("(a + b) * c - -d", "(a + b) · c − −d"),
        ("a - (b - c)", "a − (b − c)"),
        ("(a + b) div c", "⌊(a + b) / c⌋"),
        ("(a / b) mod c", "a / b mod c"),
        ("a / (b / c)", "a / (b / c)"),
        ("len(x) + 1", "|x| + 1"),
        ("sum(l < k, m < n if l != m) A[l] * B[m]", "Σ(l < k, m < n, l ≠ m) A[l] · B[m]"),
        ("max(l < k from 0) A[l]", "max(l < k, from 0) A[l]"),
        ("all(i... < d) (X[i] > 0)", "⋀(i… < d) (X[i] > 0)"),
        ("if given B then B[m] else 0", "if B is given then B[m] else 0"),
        ('case o { "a", "b": true; else: false }', 'case o of {"a", "b": true; otherwise: false}'),
        ("[x[i] for i < n if i > 0]", "[x[i] | i < n, i > 0]"),
        ("{f(t) for t in S if g(t)}", "{f(t) | t ∈ S, g(t)}"),
        ("{t |-> f(t) for t in S}", "{t ↦ f(t) | t ∈ S}"),
        ("a ++ [1, 2.5]", "a ⧺ [1, 2.5]"),
        ("not given B or c", "B is not given ∨ c"),
        ("[f(x) for x in xs if x > 0]", "[f(x) | x ∈ xs, x > 0]"),
        ("TopK@11(X, _; axis = 1)", "TopK-11(X, _, axis = 1)"),
        ("last(i < n if c from 0) X[i]", "last(i < n, c, from 0) X[i]"),
        ("filter(i... < d) (X[i] > 0)", "filter(i… < d) (X[i] > 0)"),
        ('x = "a\\"b"', 'x = "a\\"b"'),
    ],
)
def test_formulas_read_as_mathematics(text: str, shown: str) -> None:
    assert formula_text(expression(text)) == shown


def formulas() -> Iterator[Expr]:
    for file in specification().files.values():
        for declaration in file.declarations:
            if isinstance(declaration, Constraint):
                yield declaration.formula
            elif isinstance(declaration, FunctionDeclaration) and declaration.body is not None:
                yield declaration.body


def test_breaking_into_lines_loses_nothing() -> None:
    for formula in formulas():
        whole = re.sub(r"[\s{};]", "", "".join(lines_of(formula)))
        assert whole == re.sub(r"[\s{};]", "", formula_text(formula))


def test_lines_are_broken_where_connectives_allow_it() -> None:
    text = " and ".join(f"some_predicate(n, {i})" for i in range(9))
    lines = lines_of(expression(f"forall n in nodes(g): {text}"))
    assert lines[0] == "∀ n ∈ nodes(g):"
    assert lines[1:3] == ["  some_predicate(n, 0)", "    ∧ some_predicate(n, 1)"]
    assert max(map(len, lines)) <= WIDTH


def test_an_inductive_definition_is_shown_as_rules() -> None:
    shown = page_of(specification().functions["valued"])
    assert "\nis_input(t)\n───────────\nvalued(t)\n" in shown
    assert shown.count("───") and shown.count("\nvalued(t)\n") == 3


def test_a_transition_is_shown_with_its_premises_over_a_bar() -> None:
    lines = [line.strip() for line in page_of(specification().transitions["Step/fire"]).split("\n")]
    bar = next(i for i, line in enumerate(lines) if line.startswith("───"))
    assert lines[bar - 1] == "W ∈ gives(n, M)"
    assert lines[bar + 1] == "(G, M, K) ⟶ (G, M ⧺ W, K)"


def test_every_declaration_is_shown_with_its_sentence_and_clauses() -> None:
    for file in specification().files.values():
        for declaration in file.declarations:
            shown = page_of(declaration)
            assert inline(declaration.doc) in shown
            assert all(inline(c.value) in shown for c in getattr(declaration, "clauses", ()))
            if isinstance(declaration, Profile):
                assert all(f"| {inline(r.id)} | {inline(r.title)} |" in shown for r in declaration.rules)


def test_every_file_has_a_page_of_markdown_and_every_name_is_on_it() -> None:
    files = tuple(specification().files.values())
    pages = markdown(files)
    assert len(pages) == len(files) + 1
    for file in specification().files.values():
        text = pages[file.name.removesuffix(".sonnx").replace("/", "-") + ".md"]
        for declaration in file.declarations:
            assert declaration.name in text.replace("\\", "")


STATEMENTS = """
operator LSTM @ 7..14 (X: T[l, n], a_rather_long_name: T[n], another_long_name?: T[n], Xs*: T, P: T) -> (Y: T, Y_h?: T)
  "Doc."
  let f(i: Int, v: list Int) = X[i, v[0]]
  type T2 = float
  along t < l {
    view H[t < l, b < n] = if t = 0 then 0 else H[t - 1, b] + f(t, [b])
    view C[t < l, b < n] = H[t, b]
  }
  Y = Add@7(C, a_rather_long_name)
operator If @ 1 (cond: B) -> outputs*: V "Doc."
  by rule Step/if
"""


def test_the_statements_of_an_operator_are_shown_in_order() -> None:
    recurrent, branch = parse(STATEMENTS, "t").declarations
    assert [line for formula in card(recurrent).formulas for line in formula_lines(formula)] == [
        "LSTM(",
        "  X: T[l, n],",
        "  a_rather_long_name: T[n],",
        "  another_long_name: T[n] (optional),",
        "  Xs: T (any number),",
        "  P: T)",
        "→ Y: T, Y_h: T (optional)",
        "let f(i: Int, v: list of Int) ≔ X[i, v[0]]",
        "type T2 ≔ float",
        "along t < l:",
        "  view H[t, b] = if t = 0 then 0 else H[t − 1, b] + f(t, [b])",
        "    for t < l, b < n",
        "  view C[t, b] = H[t, b]",
        "    for t < l, b < n",
        "Y = Add-7(C, a_rather_long_name)",
    ]
    assert "\nby the rule Step/if\n" in page_of(branch)


@table(
    "text",
    [
        " + ".join(f"some_function(n, {i}) * other" for i in range(9)),
        " * ".join(f"some_function(n, {i})" for i in range(9)),
        f"f({', '.join(f'some_function(n, {i})' for i in range(9))})",
        f"[{', '.join(f'some_function(n, {i})' for i in range(9))}]",
        f"X[{', '.join(f'some_function(n, {i})' for i in range(9))}]",
        f"TopK@11({', '.join(f'some_function(n, {i})' for i in range(9))}; axis = some_function(n))",
        f"sum(i < n) (a + {' + '.join(f'some_function(n, {i})' for i in range(9))})",
        f"f(x) = {' ++ '.join(f'some_function(n, {i})' for i in range(9))}",
        f"[{' + '.join(f'some_function(n, {i})' for i in range(9))} for x in entries if x > 0]",
        f"if {' and '.join(f'some_function(n, {i})' for i in range(9))} then a else b",
    ],
)
def test_a_long_term_is_broken_into_lines_and_loses_nothing(text: str) -> None:
    lines = lines_of(expression(text))
    assert max(map(len, lines)) <= WIDTH
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", formula_text(expression(text)))


HOSTILE = '<script>alert(1)</script> & "q" `code` [l](javascript:x) | **b** \x1b[31m \u202e --> ]]>'
FILE = parse(
    """
sort S "DOC"
fact f(x: S): Text "DOC"
constraint c "DOC" at static: forall x in f(S): x = "DOC" note "DOC" violation "DOC"
profile p "DOC" source "DOC" { rule r "DOC" = c quote "DOC" note "DOC" }
operator Relu @ 14 (X: T[d...]) -> Y: T "DOC" note "DOC"
  require doc: len(d) > 0 "DOC" note "DOC"
  Y[i... < d] = if X[i] < 0 then 0 else X[i]
""".replace("DOC", HOSTILE.replace('"', '\\"')),
    "<script>x.sonnx",
)


def test_hostile_text_stays_text_in_markdown() -> None:
    for text in markdown((FILE,)).values():
        assert "\x1b" not in text and "\u202e" not in text
        outside = re.sub(r"```+text\n.*?\n```+\n", "", text, flags=re.DOTALL)
        assert "<script" not in outside
        assert not re.search(r"(?<!\\)\]\(javascript", outside)
        rows = [line for line in outside.split("\n") if line.startswith("| r |")]
        assert all(len(re.findall(r"(?<!\\)\|", row)) == 6 for row in rows)


def test_a_code_block_cannot_be_closed_from_within() -> None:
    file = parse('constraint c "d" at static: x = "```` ``` end"', "x.sonnx")
    text = markdown((file,))["x.md"]
    assert '`````text\nx = "```` ``` end"\n`````' in text
