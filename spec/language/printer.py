"""Printing: declarations back to text. Parsing what is printed gives the same syntax; comments are not kept."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .syntax import (
    Arm,
    AttributeDeclaration,
    Binder,
    Clause,
    Constraint,
    Contract,
    Difference,
    Expr,
    File,
    FunctionDeclaration,
    Keyword,
    Operator,
    Parameter,
    Port,
    Premise,
    Profile,
    ProfileRule,
    Property,
    Range,
    Rewrite,
    SortDeclaration,
    Source,
    Statement,
    Transition,
    Written,
    spelled_group,
)

# ---- Line breaking: a group is printed on one line when it fits, else all its lines break ------

WIDTH = 110


@dataclass(frozen=True, slots=True)
class Line:
    """A line break, or `flat` when its group fits on the line."""

    flat: str = " "


@dataclass(frozen=True, slots=True)
class Nest:
    """The body, its line breaks indented by two more columns."""

    body: Doc


@dataclass(frozen=True, slots=True)
class Group:
    """The body, flat when it fits."""

    body: Doc


Doc = str | Line | Nest | Group | tuple["Doc", ...]


def separated(docs: list[Doc], separator: Doc) -> Doc:
    """The documents with a separator between them."""
    out: list[Doc] = []
    for position, doc in enumerate(docs):
        out += [separator, doc] if position else [doc]
    return tuple(out)


def layout(doc: Doc, column: int = 0, indent: int = 0) -> str:
    """The text of a document whose first line begins at `column`."""
    out: list[str] = []
    stack: list[tuple[int, bool, Doc]] = [(indent, False, doc)]
    while stack:
        margin, flat, item = stack.pop()
        match item:
            case str():
                out.append(item)
                column += len(item)
            case Line():
                if flat:
                    out.append(item.flat)
                    column += len(item.flat)
                else:
                    out.append("\n" + " " * margin)
                    column = margin
            case Nest(body):
                stack.append((margin + 2, flat, body))
            case Group(body):
                stack.append((margin, flat or _fits(body, WIDTH - column, stack), body))
            case tuple():
                stack.extend((margin, flat, part) for part in reversed(item))
    return "".join(out)


def _fits(doc: Doc, room: int, rest: list[tuple[int, bool, Doc]]) -> bool:
    """True where the document fits flat, with what follows it up to the next possible line break."""
    todo: list[tuple[bool, Doc]] = [(flat, item) for _, flat, item in rest] + [(True, doc)]
    while todo:
        if room < 0:
            return False
        flat, item = todo.pop()
        match item:
            case str():
                room -= len(item)
            case Line():
                if not flat:
                    return True
                room -= len(item.flat)
            case Nest(body) | Group(body):
                todo.append((flat, body))
            case tuple():
                todo.extend((flat, part) for part in reversed(item))
    return room >= 0


# ---- Declarations ------------------------------------------------------------------------------

IFF, IMPLIES, OR, AND, NOT, COMPARE, SUM, PRODUCT, UNARY, POSTFIX, ATOM = range(11)
"""The levels of the grammar, from the weakest to the strongest."""

BINARY = {
    "implies": (IMPLIES, "implies", OR, IMPLIES),
    "iff": (IFF, "iff", IMPLIES, IMPLIES),
    "add": (SUM, "+", SUM, PRODUCT),
    "sub": (SUM, "-", SUM, PRODUCT),
    "concat": (SUM, "++", SUM, PRODUCT),
    "mul": (PRODUCT, "*", PRODUCT, UNARY),
    "quotient": (PRODUCT, "/", PRODUCT, UNARY),
    "div": (PRODUCT, "div", PRODUCT, UNARY),
    "mod": (PRODUCT, "mod", PRODUCT, UNARY),
}
"""For each binary head its level, its sign, and the levels of its operands."""
LEVELS = {
    "or": OR, "and": AND, "not": NOT, "compare": COMPARE, "step": COMPARE, "index": POSTFIX, "call": POSTFIX,
    "given": POSTFIX, "apply": POSTFIX, "every": POSTFIX,
    **dict.fromkeys(("neg", "forall", "exists", "unique", "ite", "case", "fold"), UNARY),
    **{head: row[0] for head, row in BINARY.items()},
}  # fmt: skip
EXTENDING = frozenset({"forall", "exists", "unique", "ite", "fold"})
"""The heads that extend to the right as far as they can; as operands they are printed in parentheses."""


def print_file(file: File | Source) -> str:
    """The text of a file: its declarations in order, separated by blank lines."""
    return "\n\n".join(print_declaration(d) for d in file.declarations) + "\n"


def print_declaration(declaration: Written) -> str:
    """The text of one declaration."""
    match declaration:
        case SortDeclaration(name, doc):
            return f"sort {name}" + _doc(doc)
        case FunctionDeclaration():
            return _function(declaration)
        case Constraint():
            head = f"constraint {declaration.name}\n  {quote(declaration.doc, 6)} at {declaration.phase}:\n  "
            return head + layout(doc_of(declaration.formula), 2, 2) + _clauses(declaration.clauses, 2)
        case Transition():
            return _transition(declaration)
        case Property():
            return _property(declaration)
        case Profile():
            rules = "\n".join(_rule(rule) + _clauses(rule.clauses, 4) for rule in declaration.rules)
            return (
                f"profile {declaration.name}{_doc(declaration.doc)}{_clauses(declaration.clauses, 2)}\n{{\n{rules}\n}}"
            )
        case Operator():
            return _operator(declaration)
        case Difference():
            return _difference(declaration)
        case Rewrite():
            return _rewrite(declaration)
        case Contract(name, version, doc, reason, clauses):
            return f"contract {name} @ {version}{_doc(doc)}{_doc(reason)}{_clauses(clauses, 2)}"


def print_expression(expr: Expr) -> str:
    """The text of an expression."""
    return layout(doc_of(expr))


def quote(text: str, indent: int = 0) -> str:
    """A text in double quotes; a long one is broken at spaces, which reading folds into one."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    lines = textwrap.wrap(
        escaped, max(WIDTH - indent - 10, 40), break_long_words=False, break_on_hyphens=False, expand_tabs=False
    )
    return '"' + ("\n" + " " * (indent + 1)).join(lines) + '"'


# ---- declarations -----------------------------------------------------------------------------


def _doc(text: str) -> str:
    return "\n  " + quote(text, 2)


def _clauses(clauses: tuple[Clause, ...], indent: int) -> str:
    words = ("status", "variant", "evidence", "obligation", "demanded", "unused", "collects", "includes")
    text, before = "", ""
    for c in clauses:
        listed = c.key == before and c.key in ("includes", "demanded")
        margin = ", " if listed else "\n" + " " * indent + c.key + " "
        text += margin + (c.value if c.key in words else quote(c.value, indent + 2))
        before = c.key
    return text


def _parameters(parameters: tuple[Parameter, ...]) -> str:
    return ", ".join(f"{p.name}: {p.sort}" for p in parameters)


def _signature(function: FunctionDeclaration) -> str:
    """Kind, name, parameters and result; the parameters in two rows where a line does not hold them."""
    lead = f"{function.kind} {function.name}("
    result = "" if function.kind == "inductive" else f": {function.result}"
    line = f"{lead}{_parameters(function.parameters)}){result}"
    if len(line) <= WIDTH:
        return line
    half = len(function.parameters) // 2
    rows = _parameters(function.parameters[:half]), _parameters(function.parameters[half:])
    return f"{lead}{rows[0]},\n    {rows[1]}){result}"


def _function(function: FunctionDeclaration) -> str:
    head = _signature(function) + _doc(function.doc)
    if function.accuracy is not None:
        head += f"\n  accuracy {function.accuracy.ulps} {quote(function.accuracy.reason, 4)}"
    if function.body is not None:
        lead = "if " if function.kind == "inductive" else "= "
        head += f"\n  {lead}" + layout(doc_of(function.body), 2 + len(lead), 4)
    return head + _clauses(function.clauses, 2)


def _premises(premises: tuple[Premise, ...]) -> list[str]:
    """A line for each `let`; what is tested in a row stands together, as far as a line reaches."""
    lines: list[str] = []
    tests = False
    for premise in premises:
        lead = "if " if premise.name is None else f"let {premise.name} = "
        text = layout(doc_of(premise.expr), 2 + len(lead), 4)
        if tests and premise.name is None and len(lines[-1]) + len(text) + 2 <= WIDTH and "\n" not in lines[-1] + text:
            lines[-1] += f", {text}"
        else:
            lines.append(f"  {lead}{text}")
        tests = premise.name is None
    return lines


def _property(stated: Property) -> str:
    """`law`, `theorem` ..., then what it is about, its premises, its needs and what it says, a line each."""
    lines = [f"{stated.kind} {stated.name}{_doc(stated.doc)}"]
    if stated.parameters:
        listed: list[Doc] = [f"{p.name}: {p.sort}" for p in stated.parameters]
        lines.append("  for " + layout(Nest(separated(listed, (",", Line()))), 6, 4))
    lines += _premises(stated.premises)
    if stated.needs:
        lines.append("  needs " + layout(Nest(separated(list(stated.needs), (",", Line()))), 8, 4))
    if stated.kind != "situation":
        lines.append("  shows " + layout(doc_of(stated.goal), 8, 4))
    return "\n".join(lines) + _clauses(stated.clauses, 2)


def _transition(transition: Transition) -> str:
    def config(exprs: tuple[Expr, ...]) -> str:
        return f"({', '.join(layout(doc_of(e), 4, 4) for e in exprs)})"

    premises = _premises(transition.premises)
    last = f"  {config(transition.source)} ~> {config(transition.target)}"
    bar = "  " + "-" * max(4, len(last) - 2)
    return "\n".join([f"rule {transition.name}{_doc(transition.doc)}:", *premises, bar, last])


def _port(port: Port, stored: str = "") -> str:
    if port.shape is None:
        return f"{port.name}{port.mark}{stored}: {spelled_group(port.type, port.others)}"
    dimensions = (str(d) if isinstance(d, int) else d[0] + ("..." if d[1] else "") for d in port.shape)
    return f"{port.name}{port.mark}{stored}: {spelled_group(port.type, port.others)}[{', '.join(dimensions)}]"


def _operator(operator: Operator) -> str:
    head = layout(Group((_title(operator), *_heading(operator.inputs, operator.outputs))), 0, 2)
    body = "".join("\n  " + _statement(s) for s in operator.statements)
    types = "".join(f"\n  types {it.name} = " + ", ".join(map(_admitted, it.allowed)) for it in operator.types)
    attributes = "".join(f"\n  {_attribute(it)}" for it in operator.attributes)
    return head + _doc(operator.doc) + _clauses(operator.clauses, 2) + types + attributes + body


STRENGTHS = {"exact": "exactly", "allowed": "allowed", "reals": "in reals", "never": "never"}
"""How a rewrite says what it claims."""


def _rewrite(rule: Rewrite) -> str:
    ports: list[Doc] = [_port(it, "!" if it.name in rule.stored else "") for it in rule.inputs]
    listed = Group(("(", Nest((Line(""), separated(ports, (",", Line())))) if ports else "", ")"))
    results = _ports(rule.outputs) if len(rule.outputs) > 1 else _port(rule.outputs[0])
    head = layout(Group((f"rewrite {rule.name} ", listed, " -> ", results)), 0, 2)
    types = "".join(f"\n  types {it.name} = " + ", ".join(map(_admitted, it.allowed)) for it in rule.types)
    attributes = "".join(f"\n  {_attribute(it)}" for it in rule.attributes)
    shared = "".join("\n  " + _statement(it) for it in rule.shared)
    sides = _side("from", rule.left) + _side("to", rule.right)
    conditions = "".join(_condition("when", it) for it in rule.conditions)
    claim = "\n  " + STRENGTHS[rule.claim] + (f" {quote(rule.reason, 8)}" if rule.reason else "")
    assumed = "".join(_condition("where", it) for it in rule.assumed)
    said = _doc(rule.doc) + _clauses(rule.clauses, 2)
    return head + said + types + attributes + shared + sides + conditions + claim + assumed


def _side(word: str, statements: tuple[Statement, ...]) -> str:
    """The equations of a side, one below the other behind its word."""
    lines = []
    for it in statements:
        lead = ", ".join(it.names) + " = "
        lines.append(f"{lead}{layout(doc_of(it.expr), 7 + len(lead), 7)}")
    return f"\n  {word:<5}" + ("\n" + " " * 7).join(lines)


def _condition(word: str, it: Statement) -> str:
    return f"\n  {word} {layout(doc_of(it.expr), 3 + len(word), 4)}\n    {quote(it.doc, 4)}{_clauses(it.clauses, 4)}"


def _admitted(kind: str) -> str:
    return kind if kind.isidentifier() else quote(kind)


def _attribute(it: AttributeDeclaration) -> str:
    default = "" if it.default is None else f" = {print_expression(it.default)}"
    return f"attribute {it.name}{it.mark}: {it.kind}{default}"


def _difference(it: Difference) -> str:
    like = f"like {it.version}" if it.base == it.name else f"like {it.base} @ {it.version}"
    heading = "" if it.inputs is None or it.outputs is None else (" ", *_heading(it.inputs, it.outputs))
    head = layout(Group((_title(it), like, heading, ":")), 0, 2) + (_doc(it.doc) if it.doc else "")
    without = "\n  without " + ", ".join(c.value for c in it.without) if it.without else ""
    after = (f"\n  after {change.after}" if change.after else "" for change in it.changes)
    body = (f"{place}\n  {_statement(change.statement)}" for place, change in zip(after, it.changes, strict=True))
    return head + _clauses(it.clauses, 2) + without + "".join(body)


def _title(meaning: Operator | Difference) -> str:
    versions = str(meaning.first) + (f"..{meaning.last}" if meaning.last != meaning.first else "")
    return f"operator {meaning.name} @ {versions} "


def _heading(inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> tuple[Doc, ...]:
    return _ports(inputs), " -> ", _ports(outputs) if len(outputs) > 1 else _port(outputs[0])


def spelled_ports(operator: Operator) -> str:
    """The inputs of an operator as its header names them: `X: T[n, c, d...], W: T[m, cg, K...]`."""
    return ", ".join(map(_port, operator.inputs))


def _ports(ports: tuple[Port, ...]) -> Doc:
    docs: list[Doc] = [_port(port) for port in ports]
    return Group(("(", Nest((Line(""), separated(docs, (",", Line())))) if docs else "", ")"))


def _rule(rule: ProfileRule) -> str:
    line = f"  rule {rule.id} {quote(rule.title, 4)} = {rule.constraint}"
    return line if len(line) <= WIDTH else f"  rule {rule.id}\n    {quote(rule.title, 4)} = {rule.constraint}"


def _statement(statement: Statement, indent: int = 2) -> str:
    """The text of a statement whose first line begins at column `indent`."""
    expr = doc_of(statement.expr)
    match statement.kind:
        case "rule":
            return f"by rule {statement.doc}"
        case "along":
            margin = "\n" + " " * (indent + 2)
            body = "".join(margin + _statement(inner, indent + 2) for inner in statement.body)
            return layout(("along ", _ranges(statement.ranges)), indent, indent) + f" {{{body}\n{' ' * indent}}}"
        case "require" | "restrict" as demand:
            lead = f"{demand} {statement.id}: "
            text = lead + layout(expr, indent + len(lead), indent) + f"\n  {' ' * indent}{quote(statement.doc, 4)}"
            return text + _clauses(statement.clauses, indent + 2)
        case "view" | "equation" | "each" | "entries" as kind:
            word = "view " if kind == "view" else ""
            name = "".join(statement.names[:1] + tuple(f"[{position}]" for position in statement.names[1:]))
            ahead = 1 if kind == "entries" else 0
            at = ("[", _ranges(statement.ranges[:ahead]), "]") if ahead else ""
            lead = layout((f"{word}{name}", at, "[", _ranges(statement.ranges[ahead:]), "] = "), indent, indent)
            text = lead + layout(expr, indent + len(lead.split("\n")[-1]), indent)
            if "\n" in text:
                text = lead.rstrip() + "\n  " + " " * indent + layout(expr, indent + 2, indent + 2)
            return text
        case kind:
            lead = {"let": "let ", "function": "let ", "type": "type "}.get(kind, "") + ", ".join(statement.names)
            lead += f"({_parameters(statement.parameters)}) = " if kind == "function" else " = "
            return lead + layout(expr, indent + len(lead), indent)


# ---- expressions ------------------------------------------------------------------------------


def doc_of(expr: Expr, level: int = IFF) -> Doc:
    """The document of an expression where the grammar wants at least `level`."""
    operand = level > (COMPARE if expr.head == "fold" else IFF)
    if LEVELS.get(expr.head, ATOM) < level or (expr.head in EXTENDING and operand):
        return "(", Nest(doc_of(expr)), ")"
    return Group(PRINTERS[expr.head](expr))


def _chain(expr: Expr) -> Doc:
    """and, or: operands one level stronger."""
    level, operands = LEVELS[expr.head], expr.parts()
    return separated([doc_of(operand, level + 1) for operand in operands], (Line(), f"{expr.head} "))


def _binary(expr: Expr) -> Doc:
    _, sign, left, right = BINARY[expr.head]
    a, b = expr.parts()
    return doc_of(a, left), Nest((Line(), f"{sign} ", doc_of(b, right)))


def _compare(expr: Expr) -> Doc:
    out: list[Doc] = []
    for arg in expr.args:
        out.append(doc_of(arg, SUM) if isinstance(arg, Expr) else (Line(), f"{arg} "))
    return out[0], Nest(tuple(out[1:]))


def _prefix(sign: str, level: int) -> Callable[[Expr], Doc]:
    return lambda expr: (sign, doc_of(expr.part(0), level))


def _quantifier(expr: Expr) -> Doc:
    return f"{expr.head} ", _binders(expr.args), ":", Nest((Line(), doc_of(expr.part(-1))))


def _binders(args: Sequence[object]) -> Doc:
    listed: list[Doc] = [(f"{b.name} in ", doc_of(b.domain, SUM)) for b in args if isinstance(b, Binder)]
    return Group(Nest(separated(listed, (",", Line()))))


def _step(expr: Expr) -> Doc:
    rule, at, *states = expr.args
    half = len(states) // 2
    sides = [("(", _list(tuple(side)), ")") for side in (states[:half], states[half:])]
    name = f" by {rule}" if rule else ""
    return *sides[0], " ~> ", *sides[1], name, ("(", doc_of(at), ")") if isinstance(at, Expr) else ""


def _ranges(ranges: tuple[Range, ...]) -> Doc:
    docs: list[Doc] = []
    for item in ranges:
        names = f"({', '.join(item.names)})" if len(item.names) > 1 else item.names[0]
        docs.append((f"{names}{'...' if item.dots else ''} < ", doc_of(item.bound, SUM)))
    return separated(docs, ", ")


def _ite(expr: Expr) -> Doc:
    """A chain of else-ifs stands at one margin."""
    docs: list[Doc] = []
    while True:
        condition, then, other = expr.parts()
        docs.append(Group(("if ", doc_of(condition), Nest((Line(), "then ", doc_of(then))))))
        if other.head != "ite":
            return separated([*docs, doc_of(other)], (Line(), "else "))
        expr = other


def _case(expr: Expr) -> Doc:
    docs: list[Doc] = []
    for arm in expr.args:
        if isinstance(arm, Arm):
            labels = separated([quote(label) for label in arm.labels], (",", Line())) if arm.labels else "else"
            docs.append(Group((Group(labels), ":", Nest((Line(), doc_of(arm.body))))))
    return "case ", doc_of(expr.part(0)), " {", Nest((Line(), separated(docs, (";", Line())))), Line(), "}"


def _fold(expr: Expr) -> Doc:
    name, *rest = expr.args
    guard, start = rest[-3:-1]
    extras: list[Doc] = [
        (f" {word} ", doc_of(arg)) for word, arg in (("if", guard), ("from", start)) if isinstance(arg, Expr)
    ]
    ranges = _ranges(tuple(r for r in rest if isinstance(r, Range)))
    return f"{name}(", ranges, *extras, ")", Nest((Line(), doc_of(expr.part(-1), PRODUCT)))


def _list(exprs: tuple[object, ...]) -> Doc:
    docs: list[Doc] = [doc_of(e) for e in exprs if isinstance(e, Expr)]
    return Nest((Line(""), separated(docs, (",", Line())))) if docs else ""


def _index(expr: Expr) -> Doc:
    return doc_of(expr.part(0), POSTFIX), "[", _list(expr.args[1:]), "]"


def _call(expr: Expr) -> Doc:
    return f"{expr.args[0]}(", _list(expr.args[1:]), ")"


def _apply(expr: Expr) -> Doc:
    """`Op@18(x, _; axis = 1)`; `_` stands for an input that is left out."""
    name, version, *rest = expr.args
    inputs: list[Doc] = [doc_of(arg) if isinstance(arg, Expr) else "_" for arg in rest if not isinstance(arg, Keyword)]
    keywords: list[Doc] = [(f"{k.name} = ", doc_of(k.value)) for k in rest if isinstance(k, Keyword)]
    listed = separated(inputs, (",", Line()))
    if keywords:
        listed = (listed, ";", Line(), separated(keywords, (",", Line())))
    return f"{name}@{version}(", Nest((Line(""), listed)) if inputs or keywords else "", ")"


def _collect(expr: Expr) -> Doc:
    _, binder, guard = expr.args
    test: Doc = (Line(), "if ", doc_of(guard)) if isinstance(guard, Expr) else ""
    return "[", Nest((doc_of(expr.part(0)), Line(), "for ", _binders((binder,)), test)), "]"


def _comprehension(expr: Expr) -> Doc:
    _, name, _, guard = expr.args
    test: Doc = (Line(), "if ", doc_of(guard)) if isinstance(guard, Expr) else ""
    limit = doc_of(expr.part(2), SUM)
    return "[", Nest((doc_of(expr.part(0)), Line(), f"for {name} < ", limit, test)), "]"


def _set_comprehension(expr: Expr) -> Doc:
    _, *binders, guard = expr.args
    test: Doc = (Line(), "if ", doc_of(guard)) if isinstance(guard, Expr) else ""
    return "{", Nest((doc_of(expr.part(0)), Line(), "for ", _binders(binders), test)), "}"


def _map_comprehension(expr: Expr) -> Doc:
    key, value = expr.parts()
    return "{", Nest((doc_of(key), " |-> ", doc_of(value), Line(), "for ", _binders(expr.args))), "}"


PRINTERS: Mapping[str, Callable[[Expr], Doc]] = {
    **dict.fromkeys(("var", "int", "float"), lambda expr: str(expr.args[0])),
    **dict.fromkeys(("true", "false"), lambda expr: expr.head),
    "text": lambda expr: quote(str(expr.args[0])),
    "every": lambda expr: f"every {expr.args[0]}",
    "step": _step,
    "given": lambda expr: f"given {expr.args[0]}",
    "vector": lambda expr: ("[", _list(expr.args), "]"),
    **dict.fromkeys(("or", "and"), _chain),
    **dict.fromkeys(BINARY, _binary),
    "not": _prefix("not ", NOT),
    "neg": _prefix("-", UNARY),
    "compare": _compare,
    **dict.fromkeys(("forall", "exists", "unique"), _quantifier),
    "ite": _ite,
    "case": _case,
    "fold": _fold,
    "index": _index,
    "call": _call,
    "apply": _apply,
    "comprehension": _comprehension,
    "collect": _collect,
    "set_comprehension": _set_comprehension,
    "map_comprehension": _map_comprehension,
    "pair": lambda expr: (doc_of(expr.part(0)), " |-> ", doc_of(expr.part(1))),
}
"""For each head its document."""
