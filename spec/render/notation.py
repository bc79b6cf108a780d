"""Mathematical notation: one fold over expressions, whose results the text and the MathML printers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..language.printer import BINARY, COMPARE, EXTENDING, IFF, LEVELS, NOT, POSTFIX, PRODUCT, SUM, UNARY, quote
from ..language.syntax import Arm, Binder, Expr, Keyword, Range


@dataclass(frozen=True, slots=True)
class Math:
    """A piece of notation.

    kind: name (a variable), symbol (a declared function), number, literal (a quoted text), word (a keyword), sign
    (between operands), prefix, mark (a bracket), separator; row (items), under (an operator and what stands below it),
    quotient (numerator and denominator, then both once more as they stand on one line).
    """

    kind: str
    text: str = ""
    items: tuple[Math, ...] = ()


def name(text: str) -> Math:
    """A variable."""
    return Math("name", text)


def word(text: str) -> Math:
    """A keyword."""
    return Math("word", text)


def sign(text: str) -> Math:
    """An infix operator or relation."""
    return Math("sign", text)


def row(*items: Math | Iterable[Math]) -> Math:
    """Pieces side by side; rows and iterables are spliced in."""
    pieces = (piece for item in items for piece in ((item,) if isinstance(item, Math) else item))
    flat = (inner for piece in pieces for inner in (piece.items if piece.kind == "row" else (piece,)))
    return Math("row", items=tuple(flat))


def separated(items: Sequence[Math], between: Math) -> Math:
    """The items with the separator between each two."""
    return row(piece for i, item in enumerate(items) for piece in ((between, item) if i else (item,)))


def between(left: str, inside: Math, right: str) -> Math:
    """The inside between two brackets."""
    return row(Math("mark", left), inside, Math("mark", right))


COMMA, COLON, SEMICOLON = Math("separator", ","), Math("separator", ":"), Math("separator", ";")
EMPTY = row()

RELATIONS = {"=": "=", "!=": "≠", "<": "<", "<=": "≤", ">": ">", ">=": "≥", "in": "∈", "not in": "∉"}
NEGATED = {"in": "not in", "=": "!="}
CONNECTIVES = {"and": "∧", "or": "∨", "implies": "⇒", "iff": "⇔"}
SIGNS = {**CONNECTIVES, "add": "+", "sub": "−", "concat": "⧺", "mul": "·", "mod": "mod"}
QUANTIFIERS = {"forall": "∀", "exists": "∃", "unique": "∃!"}
FOLDS = {"sum": "Σ", "prod": "∏", "any": "⋁", "all": "⋀", "count": "#"}
"""The operators of folds; max, min, argmax and argmin keep their names."""


def notation(expr: Expr, level: int = IFF) -> Math:
    """The notation of an expression where the grammar wants at least `level`: weaker ones get parentheses."""
    made = NOTATIONS[expr.head](expr)
    return between("(", made, ")") if needs_parentheses(expr, level) else made


def needs_parentheses(expr: Expr, level: int) -> bool:
    """The expression binds weaker than its place asks for, or would swallow what follows it there."""
    operand = level > (COMPARE if expr.head == "fold" else IFF)
    level_of = POSTFIX if expr.head == "div" else LEVELS.get(expr.head, POSTFIX)  # its brackets round down
    return level_of < level or (expr.head in EXTENDING and operand)


def _chain(expr: Expr) -> Math:
    operands = [notation(operand, NOT) for operand in expr.children()]
    return separated(operands, sign(SIGNS[expr.head]))


def _binary(expr: Expr) -> Math:
    _, _, left, right = BINARY[expr.head]
    return row(notation(expr.part(0), left), sign(SIGNS[expr.head]), notation(expr.part(1), right))


def _quotient(expr: Expr) -> Math:
    _, _, left, right = BINARY[expr.head]
    parts = (expr.part(0), left), (expr.part(1), right)
    stacked, flat = (notation(part) for part, _ in parts), (notation(part, level) for part, level in parts)
    made = Math("quotient", items=(*stacked, *flat))
    return between("⌊", made, "⌋") if expr.head == "div" else made


def _compare(expr: Expr) -> Math:
    return row(notation(a, SUM) if isinstance(a, Expr) else sign(RELATIONS[str(a)]) for a in expr.args)


def quantifier(expr: Expr) -> Math:
    """The quantifier with its binders, without its body."""
    return row(Math("prefix", QUANTIFIERS[expr.head]), binders(expr.args))


def _quantifier(expr: Expr) -> Math:
    body = expr.part(-1)
    if body.head == "true" and expr.head != "forall":
        return quantifier(expr)
    return row(quantifier(expr), COLON, notation(body))


def binders(args: Iterable[object]) -> Math:
    """`x ∈ S` for each binder among the arguments."""
    bound = [arg for arg in args if isinstance(arg, Binder)]
    return separated([row(name(b.name), sign("∈"), notation(b.domain, SUM)) for b in bound], COMMA)


def _step(expr: Expr) -> Math:
    """The two states with an arrow between them, which bears the name of the rule if one is given."""
    rule, at, *rest = expr.args
    states = [notation(state) for state in rest if isinstance(state, Expr)]
    half = len(states) // 2
    sides = [between("(", separated(side, COMMA), ")") for side in (states[:half], states[half:])]
    named = row(word("by"), Math("symbol", str(rule))) if rule else EMPTY
    node = between("(", notation(at), ")") if isinstance(at, Expr) else EMPTY
    return row(sides[0], sign("⟶"), sides[1], named, node)


def ranges(items: Iterable[object]) -> Math:
    """`i < n` for each range among the items; an index vector is written with dots."""

    def names(item: Range) -> Math:
        listed = separated([name(n + ("…" if item.dots else "")) for n in item.names], COMMA)
        return between("(", listed, ")") if len(item.names) > 1 else listed

    return separated([row(names(r), sign("<"), notation(r.bound, SUM)) for r in items if isinstance(r, Range)], COMMA)


def _ite(expr: Expr) -> Math:
    condition, then, other = (notation(part) for part in expr.children())
    return row(word("if"), condition, word("then"), then, word("else"), other)


def labels(arm: Arm) -> Math:
    """The texts that an arm of a case stands for."""
    if not arm.labels:
        return word("otherwise")
    return separated([Math("literal", quote_short(label)) for label in arm.labels], COMMA)


def quote_short(text: str) -> str:
    """A text in double quotes on one line, what cannot be printed as an escape."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(quote(text).split()))


def _case(expr: Expr) -> Math:
    arms = [row(labels(arm), COLON, notation(arm.body)) for arm in expr.args if isinstance(arm, Arm)]
    return row(word("case"), notation(expr.part(0)), word("of"), between("{", separated(arms, SEMICOLON), "}"))


def fold_operator(expr: Expr) -> Math:
    """The operator of a fold with its ranges, without the body."""
    fold, *rest = expr.args
    guard, start, _ = rest[-3:]
    below = [ranges(rest)]
    if isinstance(guard, Expr):
        below += [COMMA, notation(guard)]
    if isinstance(start, Expr):
        below += [COMMA, word("from"), notation(start)]
    operator = Math("prefix", FOLDS[str(fold)]) if fold in FOLDS else Math("symbol", str(fold))
    return Math("under", items=(operator, row(below)))


def _fold(expr: Expr) -> Math:
    return row(fold_operator(expr), notation(expr.part(-1), PRODUCT))


def brackets(expr: Expr) -> tuple[Math, list[Math | Expr], Math]:
    """The brackets and the items of a list: a vector, an index, a call, the application of an operator."""
    items: list[Math | Expr] = [arg for arg in expr.args if isinstance(arg, Expr)]
    match expr.head:
        case "vector":
            return Math("mark", "["), items, Math("mark", "]")
        case "index":
            return row(notation(expr.part(0), POSTFIX), Math("mark", "[")), items[1:], Math("mark", "]")
        case "apply":
            applied = Math("symbol", f"{expr.args[0]}-{expr.args[1]}")
            named = [arg for arg in expr.args if isinstance(arg, Keyword)]
            inputs = [name("_") if arg is None else arg for arg in expr.args if arg is None or isinstance(arg, Expr)]
            given = [row(name(k.name), sign("="), notation(k.value)) for k in named]
            return row(applied, Math("mark", "(")), [*inputs, *given], Math("mark", ")")
        case _ if expr.args[0] == "len" and len(items) == 1:
            return Math("mark", "|"), items, Math("mark", "|")
        case _:
            return row(Math("symbol", str(expr.args[0])), Math("mark", "(")), items, Math("mark", ")")


def _bracketed(expr: Expr) -> Math:
    left, items, right = brackets(expr)
    return row(left, separated([notation(i) if isinstance(i, Expr) else i for i in items], COMMA), right)


def listed(expr: Expr) -> tuple[Expr, Math]:
    """The body of a list made from ranges or entries, and what stands behind the bar."""
    if expr.head == "collect":
        return expr.part(0), _where(binders((expr.args[1],)), expr.args[2])
    below = row(name(str(expr.args[1])), sign("<"), notation(expr.part(2), SUM))
    return expr.part(0), _where(below, expr.args[3])


def _where(conditions: Math, guard: object) -> Math:
    return row(sign("|"), conditions, *([COMMA, notation(guard)] if isinstance(guard, Expr) else []))


def _listed(expr: Expr) -> Math:
    body, behind = listed(expr)
    return between("[", row(notation(body), behind), "]")


def _set_comprehension(expr: Expr) -> Math:
    return between("{", row(notation(expr.part(0)), _where(binders(expr.args), expr.args[-1])), "}")


def _map_comprehension(expr: Expr) -> Math:
    return between("{", row(_pair(expr), _where(binders(expr.args), None)), "}")


def _pair(expr: Expr) -> Math:
    return row(notation(expr.part(0)), sign("↦"), notation(expr.part(1)))


def _not(expr: Expr) -> Math:
    """A negated membership, equation or presence is one relation; anything else stands in parentheses."""
    operand = expr.part(0)
    if operand.head == "given":
        return row(name(str(operand.args[0])), word("is not given"))
    if operand.head == "compare" and len(operand.args) == 3 and operand.args[1] in NEGATED:
        left, relation, right = operand.args
        return _compare(Expr("compare", (left, NEGATED[str(relation)], right)))
    return row(Math("prefix", "¬"), notation(operand, SUM))


NOTATIONS: Mapping[str, Callable[[Expr], Math]] = {
    "var": lambda expr: name(str(expr.args[0])),
    **dict.fromkeys(("int", "float"), lambda expr: Math("number", str(expr.args[0]))),
    **dict.fromkeys(("true", "false"), lambda expr: word(expr.head)),
    "text": lambda expr: Math("literal", quote_short(str(expr.args[0]))),
    "given": lambda expr: row(name(str(expr.args[0])), word("is given")),
    **dict.fromkeys(("or", "and"), _chain),
    **dict.fromkeys(("implies", "iff", "add", "sub", "concat", "mul", "mod"), _binary),
    **dict.fromkeys(("quotient", "div"), _quotient),
    "not": _not,
    "neg": lambda expr: row(Math("prefix", "−"), notation(expr.part(0), UNARY)),
    "compare": _compare,
    **dict.fromkeys(QUANTIFIERS, _quantifier),
    "ite": _ite,
    "case": _case,
    "fold": _fold,
    "every": lambda expr: Math("symbol", str(expr.args[0])),
    "step": _step,
    **dict.fromkeys(("vector", "index", "call", "apply"), _bracketed),
    **dict.fromkeys(("comprehension", "collect"), _listed),
    "set_comprehension": _set_comprehension,
    "map_comprehension": _map_comprehension,
    "pair": _pair,
}
"""For each head its notation."""
